"""Description of a run: experiment files and their settings."""
