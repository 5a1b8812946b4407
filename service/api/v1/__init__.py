"""Contract of Dragoman itself."""
