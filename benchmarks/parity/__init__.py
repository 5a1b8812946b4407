"""Imported networks of every family against the reference that made them."""
