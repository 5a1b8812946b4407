"""Checkpoints as Marian's own files."""
