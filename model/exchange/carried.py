"""Facts of a checkpoint that other formats have no place for.

Owns which they are (limits of length, directions and what asks for them, licences), how an export
writes them and how an import reads them: under a key of its own in the config.json of transformers,
which keeps it, and elsewhere in a file of its own. They are a stranger's like everything else in a
folder: each is checked here, or by what is made of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path

from model.checkpoint.description.consistency import (
    MAX_LANGUAGES,
    MAX_LENGTH,
    MAX_LICENCES,
    MAX_PAIRS,
    MAX_PREFIX_PIECES,
    licence_problems,
    pair_problems,
    tag_problem,
)
from model.checkpoint.description.strict_json import format_json, parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.manifest import CONFIG_FILE, Licence, Manifest
from model.config import LengthLimits
from model.conversion import ConversionError, convert, key_in_place
from model.errors import CheckpointError, ConfigError, shown
from model.text.languages.tags import Language, LanguagePair, all_pairs

CARRIED_KEY = "dragoman"
"""In config.json of a folder of transformers."""
CARRIED_FILE = "dragoman.json"
"""Beside the models of other engines."""

_FORMAT_KEY = "format"
_FORMAT = 1
_MAX_BYTES = 16 * 2**20
_MAX_KEYS = 64
"""Of one entry of a list."""
_MAX_PROBLEMS = 20
_POSITIONS = "max_position_embeddings"
_LISTS: Mapping[str, tuple[type, int]] = {
    "pairs": (LanguagePair, MAX_PAIRS),
    "languages": (Language, MAX_LANGUAGES),
    "licences": (Licence, MAX_LICENCES),
}
"""What is listed, and how much of it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a folder says of the checkpoint that it was made of.

    Attributes:
        limits: Lengths; None where it does not say.
        pairs: Directions, with what asks for each; empty where it does not say, or has languages.
        languages: Where each is translated into each other, with what asks for them.
        licence: Of the weights; None where it does not say.
        licences: Of what they learned from; None where it does not say.
    """

    limits: LengthLimits | None = None
    pairs: tuple[LanguagePair, ...] = ()
    languages: tuple[Language, ...] = ()
    licence: str | None = None
    licences: tuple[Licence, ...] | None = None

    @property
    def directions(self) -> tuple[LanguagePair, ...]:
        """All of them; empty where it does not say."""
        return all_pairs(self.languages) if self.languages else self.pairs


def carried_value(manifest: Manifest) -> dict[str, object]:
    """What an export carries along, as JSON has it."""
    carried = Carried(
        limits=manifest.limits,
        pairs=() if manifest.languages else manifest.pairs,
        languages=manifest.languages,
        licence=manifest.licence,
        licences=manifest.licences,
    )
    stated = {name: value for name, value in asdict(carried).items() if value or name == "licences"}
    for name in ("pairs", "languages"):
        if name in stated:
            stated[name] = [
                {key: value for key, value in entry.items() if value} for entry in stated[name]
            ]
    return {_FORMAT_KEY: _FORMAT, **stated}


def is_carried(value: object) -> bool:
    """Whether an export of ours wrote a value; other programs may use the same name."""
    if not isinstance(value, Mapping):
        return False
    number = value.get(_FORMAT_KEY)
    return type(number) is int and number > 0


def write_carried(folder: Path, manifest: Manifest) -> None:
    """Write the file of an export whose description has no room for a key of its own."""
    (folder / CARRIED_FILE).write_bytes(format_json(carried_value(manifest)))


def read_carried(folder: Path) -> tuple[Carried, list[str]]:
    """What a folder carries along in either form; nothing, and its problems, where that is wrong.

    What has not the mark of an export is somebody else's and says nothing. A config.json that
    cannot be read carries nothing: whoever reads the rest of it tells why. Of many problems the
    first are told.
    """
    try:
        stated = _stated(folder)
    except CheckpointError as error:
        return Carried(), [f"{CARRIED_FILE} {error.problem}"]
    except ConfigError as error:
        return Carried(), [f"{CARRIED_FILE} {error}"]
    if stated is None:
        return Carried(), []
    carried, found = _converted(stated.value)
    if not found:
        problems = _inner_problems(carried, stated.positions)
        found = list(islice(problems, _MAX_PROBLEMS + 1))
    told = [f"{stated.place}{problem}" for problem in found[:_MAX_PROBLEMS]]
    if len(found) > _MAX_PROBLEMS:
        told.append(f"{stated.place[:-1].strip(':')} has more problems than these {_MAX_PROBLEMS}")
    return Carried() if found else carried, told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stated:
    """What a folder states.

    Attributes:
        value: With the mark of an export, and not looked at yet.
        place: What stands before the name of something in it, in errors.
        positions: Rows of the folder's position table, if it says that.
    """

    value: Mapping[str, object]
    place: str
    positions: object = None


def _stated(folder: Path) -> _Stated | None:
    """The value; None where there is none of an export.

    Raises:
        CheckpointError: Its own file cannot be read.
        ConfigError: It is not JSON.
    """
    if (folder / CARRIED_FILE).is_file():
        value = parse_json(read_limited(folder / CARRIED_FILE, _MAX_BYTES))
        if isinstance(value, dict) and is_carried(value):
            return _Stated(value=value, place=f"{CARRIED_FILE}: ")
        return None
    try:
        config = parse_json(read_limited(folder / CONFIG_FILE, _MAX_BYTES))
    except (CheckpointError, ConfigError):
        return None
    value = config.get(CARRIED_KEY) if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(value, dict) or not is_carried(value):
        return None
    place = f"{CONFIG_FILE}: {CARRIED_KEY}."
    return _Stated(value=value, place=place, positions=config.get(_POSITIONS))


def _converted(value: Mapping[str, object]) -> tuple[Carried, list[str]]:
    """The value with its types, or nothing and the first problems.

    What a later version may carry along is left out. Counts are looked at before entries, and
    those one by one: a small file may have hundreds of thousands of wrong ones.
    """
    if value[_FORMAT_KEY] != _FORMAT:
        number = shown(value[_FORMAT_KEY])
        return Carried(), [f"{_FORMAT_KEY} is {number}; only {_FORMAT} is read"]
    names = {field.name for field in fields(Carried)}
    known = {name: item for name, item in value.items() if name in names}
    found = list(islice(_size_problems(known), _MAX_PROBLEMS + 1))
    found = found or list(islice(_entry_problems(known), _MAX_PROBLEMS + 1))
    if found:
        return Carried(), found
    try:
        return convert(Carried, known), []
    except ConversionError as error:
        return Carried(), [f"{problem.place} {problem.text}" for problem in error.problems]


def _size_problems(value: Mapping[str, object]) -> Iterator[str]:
    """More than is read, of entries or within one."""
    for name, item in value.items():
        _, limit = _LISTS.get(name, (None, _MAX_KEYS))
        entries = item if isinstance(item, list) else ()
        if isinstance(item, (list, dict)) and len(item) > limit:
            yield f"{name} has {len(item)} entries; at most {limit} are read"
            continue
        for index, entry in enumerate(entries):
            if isinstance(entry, (list, dict)) and len(entry) > _MAX_KEYS:
                yield f"{name}[{index}] has {len(entry)} entries; at most {_MAX_KEYS} are read"
                continue
            pieces = entry.items() if isinstance(entry, dict) else ()
            for key, inner in pieces:
                if isinstance(inner, (list, dict)) and len(inner) > MAX_PREFIX_PIECES:
                    yield (
                        f"{name}[{index}].{key_in_place(key)} has {len(inner)} entries;"
                        f" at most {MAX_PREFIX_PIECES} are read"
                    )


def _entry_problems(value: Mapping[str, object]) -> Iterator[str]:
    """Types of what is listed, entry by entry."""
    for name, (kind, _) in _LISTS.items():
        entries = value.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            try:
                convert(kind, entry)
            except ConversionError as error:
                for problem in error.problems:
                    dot = "." if problem.place else ""
                    yield f"{name}[{index}]{dot}{problem.place} {problem.text}"


def _inner_problems(carried: Carried, positions: object) -> Iterator[str]:
    yield from _limit_problems(carried.limits, positions)
    yield from _language_problems(carried)
    yield from licence_problems(carried.licence or "", carried.licences or ())


def _limit_problems(limits: LengthLimits | None, positions: object) -> Iterator[str]:
    """Limits that no network has, or beyond the position table."""
    rows = positions if type(positions) is int and positions > 0 else None
    for name, length in () if limits is None else asdict(limits).items():
        if not 1 <= length <= MAX_LENGTH:
            yield f"limits.{name} is {shown(length)}; it must be from 1 to {MAX_LENGTH}"
        elif rows is not None and length > rows:
            yield f"limits.{name} is {length}; {_POSITIONS} is {rows}"


def _language_problems(carried: Carried) -> Iterator[str]:
    """Two lists where there is one, more languages than are read, tags that are none, doubles."""
    if carried.languages and carried.pairs:
        yield "pairs and languages are both given; languages stand for all their pairs"
    named = {tag for pair in carried.pairs for tag in (pair.source, pair.target)}
    if len(named) > MAX_LANGUAGES:
        yield f"pairs has {len(named)} languages; at most {MAX_LANGUAGES} are read"
        return
    yield from pair_problems(carried.pairs)
    for index, language in enumerate(carried.languages):
        if (problem := tag_problem(language.tag)) is not None:
            yield f"languages[{index}].tag{problem}"
    for tag, count in Counter(language.tag for language in carried.languages).items():
        if count > 1:
            yield f"languages has {tag} {count} times"
