"""Contract of LibreTranslate."""
