"""Client side of the engine, in the front process."""
