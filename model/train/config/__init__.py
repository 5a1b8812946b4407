"""What describes a run."""
