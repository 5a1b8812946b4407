"""What prepares a run's text."""
