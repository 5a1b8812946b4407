"""Files of a checkpoint: checksums, sizes, and a directory that takes the place of another."""
