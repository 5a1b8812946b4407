"""What is served: checkpoints, replaced together."""
