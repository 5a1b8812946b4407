"""Preparation of a run's text, up to batches."""
