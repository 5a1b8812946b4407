"""Checkpoints written in the formats of other engines."""
