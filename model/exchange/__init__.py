"""Checkpoints for other engines: the same weights, to be compared or served elsewhere."""
