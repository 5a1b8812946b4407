"""What a run keeps on the disk to go on from or to serve."""
