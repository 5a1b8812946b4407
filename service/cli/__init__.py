"""The command `dragoman` and its sub-commands."""
