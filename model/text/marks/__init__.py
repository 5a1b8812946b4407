"""Marks, which stand in a text and are not language: found, carried, placed."""
