"""Checkpoints in the served folder: discovery, conversion, what each is and needs."""
