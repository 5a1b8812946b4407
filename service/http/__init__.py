"""HTTP below the contracts."""
