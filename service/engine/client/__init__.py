"""The front's side of the engine."""
