"""Command of a child process that runs a module of the server.

Owns what every such command has alike: this interpreter, and a search for modules that leaves out
the current directory. There may be anybody's files, and one called `token.py` would be imported in
the place of Python's own.
"""

import sys


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module by its full name ("service.fronts") with some arguments."""
    return [sys.executable, "-P", "-m", module, *arguments]
