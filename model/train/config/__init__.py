"""The configuration of a training run."""
