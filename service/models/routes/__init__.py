"""Routes: which checkpoints translate from one language to another."""
