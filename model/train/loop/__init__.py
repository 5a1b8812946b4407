"""The updates of a run, and what they cost."""
