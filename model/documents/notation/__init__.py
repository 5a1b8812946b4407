"""Notation around texts: what a document is, and how translations come back into it."""
