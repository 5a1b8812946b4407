"""Command `dragoman` and its sub-commands."""
