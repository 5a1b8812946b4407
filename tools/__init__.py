"""Tools for the repository itself: the audit of dependencies, the bill of materials."""
