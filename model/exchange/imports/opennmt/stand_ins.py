"""Stand-ins for the classes that older checkpoints of OpenNMT-py name in their pickles.

Owns which names get one: those of torchtext and of OpenNMT-py, and two of Python's that their
objects are made with. A stand-in keeps the state that a pickle gives it and runs nothing; neither
library is needed, nor any of its code. Names of everything else are refused by PyTorch's restricted
unpickler, as always.
"""

import io
import pickletools
from collections.abc import Callable, Set
from typing import Self

_MODULES = ("torchtext.", "onmt.")
_PARTIAL = "functools.partial"
_DEFAULT_DICT = "collections.defaultdict"


class StandIn:
    """An object of a class that is not there.

    Attributes:
        values: Its attributes, where its state was a table of them.
    """

    values: dict[str, object]

    def __new__(cls, *_arguments: object) -> Self:
        """An object without values, whatever its own class would make of the arguments."""
        made = super().__new__(cls)
        made.values = {}
        return made

    def __repr__(self) -> str:
        return f"<StandIn of {len(self.values)} values>"

    def __setstate__(self, state: object) -> None:
        """Keep the attributes; what is no table of them says nothing that is needed."""
        self.values = dict(state) if isinstance(state, dict) else {}


def asked_globals(data: bytes, *, num_pickles: int = 1) -> frozenset[str]:
    """The names of classes and functions that pickles ask for; nothing of them is run.

    Args:
        data: Pickles, one after the other, and whatever follows them.
        num_pickles: How many are looked at.

    Raises:
        ValueError: Something in them is no pickle.
    """
    file, names = io.BytesIO(data), set()
    for _ in range(num_pickles):
        for operation, argument, _place in pickletools.genops(file):
            if operation.name == "GLOBAL":
                names.add(str(argument).replace(" ", "."))
    return frozenset(names)


def stand_ins(names: Set[str]) -> list[tuple[Callable[..., object], str]]:
    """For PyTorch's list of safe names: stand-ins of those among `names` that get one."""
    found: list[tuple[Callable[..., object], str]] = [
        (StandIn, name) for name in sorted(names) if name.startswith(_MODULES) or name == _PARTIAL
    ]
    return [*found, *((_plain_dict, name) for name in names if name == _DEFAULT_DICT)]


def _plain_dict(*_arguments: object) -> dict[object, object]:
    """A table without a default, to be filled."""
    return {}
