"""Declarations of the fields of `ModelConfig` that a backend or an export honours.

Owns the form of a declaration and the refusal of every network that goes beyond one. What each of
them honours is declared beside its code. Imports no torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum

from model.config import ModelConfig
from model.errors import UnsupportedVariantError


class EveryValue(Enum):
    """The declaration of a field whose every value is honoured."""

    VALUE = "every value"


EVERY_VALUE = EveryValue.VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A named condition on a network, where a list of values cannot say what is honoured.

    Attributes:
        name: What the field must be, as it reads after "only".
        holds: Whether a network fulfils it.
    """

    name: str
    holds: Callable[[ModelConfig], bool]


Allowed = EveryValue | tuple[object, ...] | Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class HonouredFields:
    """Declaration of the fields that a backend or an export honours.

    Attributes:
        by: Its name in an error.
        fields: Every field of `ModelConfig`, with the values that are honoured.
    """

    by: str
    fields: Mapping[str, Allowed]


def unsupported_fields(config: ModelConfig, honoured: HonouredFields) -> list[str]:
    """A sentence fragment for every field whose value is not honoured.

    A field that the declaration does not have is one of them, whatever its value.
    """
    problems = []
    for field in fields(config):
        value = getattr(config, field.name)
        allowed = honoured.fields.get(field.name, ())
        if isinstance(allowed, Condition):
            is_honoured, only = allowed.holds(config), allowed.name
        elif isinstance(allowed, EveryValue):
            is_honoured, only = True, allowed.value
        else:
            is_honoured = value in allowed
            only = " or ".join(map(repr, allowed)) or "networks without this field"
        if not is_honoured:
            problems.append(f"network.{field.name} is {value!r} (only {only})")
    return problems


def check_honoured(config: ModelConfig, honoured: HonouredFields) -> None:
    """Refuse a network that goes beyond a declaration.

    Raises:
        UnsupportedVariantError: With all fields that are not honoured, their values and those that
            are.
    """
    problems = unsupported_fields(config, honoured)
    if problems:
        raise UnsupportedVariantError(
            f"{honoured.by} does not run this network: {'; '.join(problems)}"
        )
