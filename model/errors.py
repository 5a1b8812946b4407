"""The error tree: everything Dragoman raises on purpose derives from `DragomanError`.

This file owns the types and what they carry. It does not own HTTP status codes (those are
`service.errors`) and it does not format values of users' text: a text is named by its length.
"""

from pathlib import Path


class DragomanError(Exception):
    """Base of every deliberate error."""


class ConfigError(DragomanError):
    """A configuration value is impossible or contradicts another one."""


class DeviceError(DragomanError):
    """The device that was asked for is not there."""


class UnsupportedVariantError(DragomanError):
    """The network is valid, but the fast path, or another format, does not know this variant."""


class CapacityError(DragomanError):
    """A decoding session was asked to hold more than it was allocated for."""


class DecodingError(DragomanError):
    """The network gave no finite score for a sentence."""


class CheckpointError(DragomanError):
    """A checkpoint file is missing, damaged or inconsistent.

    Attributes:
        path: The file at fault.
        problem: What is wrong with it, as a sentence fragment.
    """

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class DataError(DragomanError):
    """Training or evaluation text is missing, misaligned or empty."""


class TrainingError(DragomanError):
    """Training cannot go on (a diverged loss, a state that does not fit the run)."""


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


class TextTooLongError(InputError):
    """A text has more characters than are allowed."""


class UnsupportedLanguageError(InputError):
    """No loaded model translates between the two languages."""
