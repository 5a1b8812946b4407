"""Checkpoints on disk: what they say of themselves, how they are written and read."""
