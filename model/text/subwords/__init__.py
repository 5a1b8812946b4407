"""Subwords: text to pieces and token ids, and back."""
