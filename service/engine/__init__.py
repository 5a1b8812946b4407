"""The engine: the one process that owns the network, and the front's side of it."""
