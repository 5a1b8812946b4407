"""Constraints of the caller on a translation: its beginning and its terms."""
