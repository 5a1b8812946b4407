"""Contracts on the wire, a folder each, over one admission; every value is checked here, once."""
