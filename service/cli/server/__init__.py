"""Commands of a server, and of those who run it."""
