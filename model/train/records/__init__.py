"""Journal, curves, report and card of a run."""
