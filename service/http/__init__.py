"""HTTP below the contracts: connections, bodies, the edge, replies."""
