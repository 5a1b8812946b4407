"""The training loop: updates, losses, workers, dev scores."""
