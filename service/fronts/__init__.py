"""Several front processes on one port, and the process that owns what they share."""
