"""Settings as a message, and back: a front has those of its owner, flags included.

Owns how each kind of value is written. Secrets go in clear over a socket pair that no other process
has.
"""

from typing import Any

from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from service.access.keys import KeyRing
from service.fronts.messages import Begin
from service.settings import Settings


def begin_with(settings: Settings, *, max_connections: int, keys: KeyRing | None) -> Begin:
    """The first message to a front; arguments as its attributes."""
    values: dict[str, Any] = {}
    for name in Settings.model_fields:
        value = getattr(settings, name)
        secret = value.get_secret_value() if isinstance(value, SecretStr) else None
        values[name] = to_jsonable_python(value) if secret is None else secret
    return Begin(settings=values, max_connections=max_connections, keys=keys)


def settings_of(begin: Begin) -> Settings:
    """The settings that a message was made of."""
    return Settings(**begin.settings)
