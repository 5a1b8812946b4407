"""Worker side of the engine, in its own process."""
