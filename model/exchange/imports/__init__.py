"""Checkpoints from the models of other programs, one file a format or a family."""
