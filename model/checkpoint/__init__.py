"""Checkpoints on disk: their description, their files, and how both are written and read."""
