"""The wire: one file per contract, every value checked here, once."""
