"""Deployed checkpoints: loading, routing, replacement and translation."""
