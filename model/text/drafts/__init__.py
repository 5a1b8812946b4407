"""Drafts: segments of a text, their tries, checks and rounds through the network."""
