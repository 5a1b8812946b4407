"""LibreTranslate's contract."""
