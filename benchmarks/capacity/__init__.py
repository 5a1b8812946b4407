"""What a server of some size can do, and what so many requests a second need."""
