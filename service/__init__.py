"""The translation service: HTTP in front, one engine process behind."""
