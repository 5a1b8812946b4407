"""Values of DeepL's contract, as JSON or a form brings them: words, flags, strings, refusals.

Owns how one value is read and how a wrong one is refused. Which values a route wants is
`service.api.deepl.request` and `service.api.deepl.dictionaries`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from model.text.pipeline import without_surrogates
from service.errors import RequestError, invalid, scalar

FLAGS: Mapping[str, bool] = MappingProxyType({"0": False, "1": True, "false": False, "true": True})


def choice(values: Mapping[str, object], name: str, choices: tuple[str, ...]) -> str | None:
    """One of some words, in any case; None where there is none.

    Raises:
        RequestError: A 400.
    """
    value = values.get(name)
    if value is None or value == "":
        return None
    word = str(value).lower() if isinstance(value, str | int) else ""
    if word not in choices:
        raise unsupported(name, value, limit=", ".join(choices))
    return word


def flag(values: Mapping[str, object], name: str) -> bool:
    """A yes or no; no where there is none.

    Raises:
        RequestError: A 400.
    """
    return FLAGS[choice(values, name, tuple(FLAGS)) or "0"]


def string(values: Mapping[str, object], name: str) -> str | None:
    """A string without lone surrogates; None where there is none, or an empty one.

    Raises:
        RequestError: A 400.
    """
    value = values.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise unsupported(name, value, limit="string")
    return without_surrogates(value)


def needed(values: Mapping[str, object], name: str) -> str:
    """A string that has to be there.

    Raises:
        RequestError: A 400.
    """
    found = string(values, name)
    if found is None:
        raise invalid(f"Parameter '{name}' not specified.", limit=name)
    return found


def unsupported(
    name: str, value: object = None, *, reason: str = "", limit: str | None = None
) -> RequestError:
    """A 400 as DeepL words it; a value that is like a text is not repeated."""
    shown = scalar(value)
    is_itself = shown is not None and isinstance(shown, str) == isinstance(value, str)
    said = str(shown).lower() if isinstance(shown, bool) else shown
    parts = [f"Value for '{name}' not supported"]
    parts += [f": {said}"] if is_itself else []
    parts += [f" ({reason})"] if reason else []
    parts += [f"; it must be {limit}"] if limit else []
    return invalid("".join(parts), value=shown, limit=limit)
