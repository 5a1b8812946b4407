"""Engine: the process that owns the network, and the front's client of it."""
