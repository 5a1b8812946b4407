"""Sentences: where they begin and end, and what around them is not language."""
