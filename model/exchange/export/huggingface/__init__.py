"""Checkpoints in the layout of Hugging Face's transformers: what all families share, one each."""
