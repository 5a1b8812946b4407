"""OpenNMT-py's checkpoints."""
