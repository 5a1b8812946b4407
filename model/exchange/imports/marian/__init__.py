"""Marian's models, and the releases that are made of them."""
