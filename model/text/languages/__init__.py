"""Languages: their tags, their scripts, and which one a text is in."""
