"""Compiled kernels: whether they can be used here, for which instruction set, and their import.

Owns the choice: the fastest level that was built and that the processor has, or the one that
`DRAGOMAN_ISA` names. A level is the kernels compiled for one instruction set, a module of its own
that must not even be imported where the processor lacks it. What the processor has is asked of
`_kernels`, which runs everywhere.
"""

import importlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from model.errors import ConfigError, UnsupportedVariantError

if TYPE_CHECKING:
    from collections.abc import Callable

    from model.native import _kernels

EXTENSION = "model.native._kernels"
VARIABLE = "DRAGOMAN_ISA"
"""Which instruction set to use, by name; without it the fastest one that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The compiled classes; what they are stands in `_kernels.pyi` and in `src/`.

    Attributes:
        instruction_set: What the sessions' kernels are compiled for, as in `avx512-vnni`.
        session: The class, its level given.
        layout: Name of how matrices are packed, the same for all instruction sets.
    """

    instruction_set: str
    team: "type[_kernels.Team]"
    weight_memory: "type[_kernels.WeightMemory]"
    matrix: "type[_kernels.Matrix]"
    norm: "type[_kernels.Norm]"
    network: "type[_kernels.Network]"
    shortlist: "type[_kernels.Shortlist]"
    session: "Callable[..., _kernels.Session]"
    layout: str


def find_problem() -> str | None:
    """Why the kernels cannot be used here, in a few words; None when they can.

    Raises:
        ConfigError: `DRAGOMAN_ISA` names what cannot be used here.
    """
    if importlib.util.find_spec(EXTENSION) is None:
        return f"{EXTENSION} was not built when the package was installed"
    if missing := missing_flags():
        return f"the processor has no {', '.join(missing)}"
    if chosen(os.environ) is None:
        return "no kernels were built for what the processor has"
    return None


def missing_flags() -> list[str]:
    """What even the least demanding kernels need and the processor lacks; empty if nothing."""
    return min(missing_features().values(), key=len, default=[])


def missing_features() -> dict[str, list[str]]:
    """By instruction set, the fastest first, what the processor or the system lacks of it."""
    if importlib.util.find_spec(EXTENSION) is None:
        return {}
    module: Any = importlib.import_module(EXTENSION)
    features: dict[str, list[str]] = module.missing_features()
    return features


def usable() -> list[str]:
    """Instruction sets that the processor has and kernels were built for, the fastest first."""
    return [name for name, missing in missing_features().items() if not missing and _is_built(name)]


def chosen(environment: Mapping[str, str]) -> str | None:
    """The instruction set to use; None if there is none.

    Args:
        environment: Variables, of which `DRAGOMAN_ISA` may name one.

    Raises:
        ConfigError: The one that is named is unknown, was not built, or is not the processor's.
    """
    asked = environment.get(VARIABLE, "")
    if not asked:
        return next(iter(usable()), None)
    missing = missing_features()
    if asked not in missing:
        known = ", ".join(missing) or "none"
        raise ConfigError(f"{VARIABLE} is {asked!r}; kernels here are for: {known}")
    if missing[asked]:
        raise ConfigError(f"{VARIABLE} is {asked!r}; the processor has no {missing[asked][0]}")
    if not _is_built(asked):
        raise ConfigError(f"{VARIABLE} is {asked!r}; {_module_name(asked)} was not built")
    return asked


def load(instruction_set: str | None = None) -> Kernels:
    """Import the compiled modules.

    Args:
        instruction_set: One of `usable`; None for the one to use.

    Raises:
        UnsupportedVariantError: They cannot be used here.
        ConfigError: As of `chosen`.
    """
    problem = find_problem()
    if problem is not None:
        raise UnsupportedVariantError(f"int8 is not available: {problem}")
    name = instruction_set or chosen(os.environ)
    if name is None or name not in usable():
        raise UnsupportedVariantError(f"int8 is not available: no kernels for {name}")
    module = importlib.import_module(EXTENSION)
    level = importlib.import_module(_module_name(name)).LEVEL
    return Kernels(
        instruction_set=name,
        team=module.Team,
        weight_memory=module.WeightMemory,
        matrix=module.Matrix,
        norm=module.Norm,
        network=module.Network,
        shortlist=module.Shortlist,
        session=partial(module.Session, level),
        layout=module.LAYOUT,
    )


def _module_name(instruction_set: str) -> str:
    return f"{EXTENSION}_{instruction_set.replace('-', '_')}"


def _is_built(instruction_set: str) -> bool:
    return importlib.util.find_spec(_module_name(instruction_set)) is not None
