"""Our own contract."""
