"""States, snapshots, averages and checkpoints of a run."""
