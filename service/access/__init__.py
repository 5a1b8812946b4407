"""Access to the server: keys, rate limits and client addresses."""
