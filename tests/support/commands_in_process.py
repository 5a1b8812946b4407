"""`dragoman` commands in this process, in place of those that the scripts of experiments/ start."""

from collections.abc import Sequence

from service.cli.main import main


def run_all(commands: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other, as `commands.run_all` does side by side.

    Raises:
        SystemExit: One failed, and the message names it.
    """
    for words in commands:
        if status := main(list(words)):
            raise SystemExit(f"dragoman {' '.join(words)}: exit status {status}")
