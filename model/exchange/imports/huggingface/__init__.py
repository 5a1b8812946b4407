"""Hugging Face's folders and the networks in them, one family a file."""
