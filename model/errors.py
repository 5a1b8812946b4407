"""The error tree: everything Dragoman raises on purpose derives from `DragomanError`.

This file owns the types and what they carry. It does not own HTTP status codes (those are
`service.errors`) and it does not format values of users' text: a text is named by its length.
"""

from collections.abc import Sequence
from pathlib import Path

MAX_SHOWN_CHARACTERS = 60
MAX_MESSAGE_CHARACTERS = 2_000
_MAX_PATH = 4_096


def shown(value: object) -> str:
    """A value that a stranger wrote, for a message: on one line and not long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a very long number"
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    return text[:MAX_SHOWN_CHARACTERS] + "…"


def one_line(message: str, *, max_characters: int = MAX_MESSAGE_CHARACTERS) -> str:
    """A message without control characters and line ends, cut where it is too long."""
    left_out = len(message) - max_characters
    if left_out > 0:
        message = f"{message[:max_characters]}… ({left_out} more characters)"
    return "".join(
        character if character == " " or character.isprintable() else repr(character)[1:-1]
        for character in message
    )


def _mebibytes(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB"


class DragomanError(Exception):
    """Base of every deliberate error."""


class ConfigError(DragomanError, ValueError):
    """A configuration value is impossible or contradicts another one.

    As a `ValueError` it is one of several that `model.conversion` reports together.
    """


class DeviceError(DragomanError):
    """The device that was asked for is not there."""


class KernelError(DragomanError):
    """A kernel cannot be compiled, loaded or launched; torch's operators can do the same step."""


class UnsupportedVariantError(DragomanError):
    """The network is valid, but the fast path, or another format, does not know this variant."""


class CapacityError(DragomanError):
    """A decoding session was asked to hold more than it was allocated for."""


class DecodingError(DragomanError):
    """The network gave no finite score for a sentence."""


class CheckpointError(DragomanError):
    """A checkpoint file is missing, damaged or inconsistent.

    Its message is one line of bounded length, whatever the file has in it.

    Attributes:
        path: The file at fault.
        problem: What is wrong with it, as a sentence fragment.
    """

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = one_line(problem)
        super().__init__(f"{one_line(str(path), max_characters=_MAX_PATH)}: {self.problem}")


class MemoryShortageError(DragomanError):
    """There is not the memory that a model takes.

    Attributes:
        path: The model.
        problem: Both as a sentence fragment.
        needed_bytes: What it takes at least.
        free_bytes: What there is; None if the system does not tell.
    """

    def __init__(self, path: Path, *, needed_bytes: int, free_bytes: int | None) -> None:
        self.path = path
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes
        free = "not so much is" if free_bytes is None else f"{_mebibytes(free_bytes)} are"
        self.problem = f"needs at least {_mebibytes(needed_bytes)} of memory; {free} free"
        super().__init__(f"{one_line(str(path), max_characters=_MAX_PATH)}: {self.problem}")


class ForeignModelError(DragomanError):
    """A model of another program cannot be converted.

    Attributes:
        path: What was to be converted.
        problems: Everything that is in the way, a sentence fragment each.
    """

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.path = path
        self.problems = tuple(one_line(problem) for problem in problems)
        super().__init__(
            f"{one_line(str(path), max_characters=_MAX_PATH)}: {'; '.join(self.problems)}"
        )


class UnreadableModelError(ForeignModelError):
    """Its file is cut short or damaged; another copy of it may be whole."""


class RegistryError(DragomanError):
    """A registry of models, or a file that it lists, is not what it should be.

    Attributes:
        place: The URL or name at fault, without credentials.
        problem: What is wrong with it, as a sentence fragment.
    """

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = one_line(problem)
        super().__init__(f"{one_line(place, max_characters=_MAX_PATH)}: {self.problem}")


class UnreachableError(RegistryError):
    """A registry does not answer, or not in time."""


class DataError(DragomanError):
    """Training or evaluation text is missing, misaligned or empty."""


class BulkError(DragomanError):
    """A bulk job cannot go on: its cluster cannot be used, or its workers die again and again."""


class TrainingError(DragomanError):
    """Training cannot go on (a diverged loss, a state that does not fit the run)."""


class UnwritableError(TrainingError):
    """A file of a run cannot be written, such as on a full disk; no key of its file is why."""


class DocumentError(DragomanError):
    """A document cannot be read: it is damaged, encrypted, too large or of another kind.

    Attributes:
        kind: The kind it was said to be of.
        problem: What is wrong with it, as a sentence fragment.
    """

    def __init__(self, kind: str, problem: str) -> None:
        self.kind = kind
        self.problem = one_line(problem)
        super().__init__(f"the {kind} document {self.problem}")


class InputError(DragomanError):
    """A caller's value is outside its limit.

    Attributes:
        value: The value at fault; for a text its length, never the text.
        limit: What would have been accepted.
    """

    def __init__(self, message: str, *, value: object, limit: object) -> None:
        self.value = value
        self.limit = limit
        super().__init__(message)
