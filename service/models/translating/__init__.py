"""Translation of a request: its drivers, and the search of its segments."""
