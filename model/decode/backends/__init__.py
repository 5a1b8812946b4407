"""Backends, which run network and search behind a session: one folder or file each."""
