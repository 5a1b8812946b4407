"""Bulk translation: whole files and folders of them, block by block, each block exactly once."""
