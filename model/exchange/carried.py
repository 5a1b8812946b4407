"""Facts of a checkpoint that other formats have no place for: limits, directions, licences.

Owns how an export writes them and how an import reads them: under a key of its own in the
config.json of transformers, which keeps it, and elsewhere in a file of its own. They are a
stranger's like everything else in a folder: each is checked here, or by what is made of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from model.checkpoint.description.consistency import MAX_LANGUAGES, MAX_LENGTH, MAX_PAIRS
from model.checkpoint.description.strict_json import format_json, parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.manifest import CONFIG_FILE, Licence, Manifest
from model.config import LengthLimits
from model.conversion import ConversionError, convert
from model.errors import CheckpointError, ConfigError, InputError, shown
from model.text.languages.tags import canonical_tag

CARRIED_KEY = "dragoman"
"""In config.json of a folder of transformers."""
CARRIED_FILE = "dragoman.json"
"""Beside the models of other engines."""

_MAX_BYTES = 16 * 2**20
_POSITIONS = "max_position_embeddings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Direction by its canonical tags; what asks a network for it, its vocabulary says."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a folder says of the checkpoint that it was made of.

    Attributes:
        limits: Lengths; None where it does not say.
        pairs: Directions; empty where it does not say, or where each of the languages that the
            vocabulary has is translated into each other.
        licence: Of the weights; None where it does not say.
        licences: Of what they learned from; empty where it does not say.
    """

    limits: LengthLimits | None = None
    pairs: tuple[Direction, ...] = ()
    licence: str | None = None
    licences: tuple[Licence, ...] = ()

    @property
    def tags(self) -> tuple[tuple[str, str], ...]:
        """Source and target tags of the directions."""
        return tuple((pair.source, pair.target) for pair in self.pairs)


def carried_value(manifest: Manifest) -> dict[str, object]:
    """What an export carries along, as JSON has it."""
    named = () if manifest.languages else manifest.pairs
    carried = Carried(
        limits=manifest.limits,
        pairs=tuple(Direction(source=pair.source, target=pair.target) for pair in named),
        licence=manifest.licence,
        licences=manifest.licences,
    )
    return {name: value for name, value in asdict(carried).items() if value}


def write_carried(folder: Path, manifest: Manifest) -> None:
    """Write the file of an export whose description has no room for a key of its own."""
    (folder / CARRIED_FILE).write_bytes(format_json(carried_value(manifest)))


def read_carried(folder: Path) -> tuple[Carried, list[str]]:
    """What a folder carries along in either form; nothing, and every problem, where that is wrong.

    A config.json that cannot be read carries nothing: whoever reads the rest of it tells why.
    """
    try:
        stated = _stated(folder)
        carried = Carried() if stated is None else convert(Carried, _known(stated.value))
    except CheckpointError as error:
        return Carried(), [f"{CARRIED_FILE} {error.problem}"]
    except ConversionError as error:
        assert stated is not None
        return Carried(), [
            f"{stated.inner if problem.place else stated.place}{problem.place} {problem.text}"
            for problem in error.problems
        ]
    except ConfigError as error:
        return Carried(), [f"{CARRIED_FILE} {error}"]
    if stated is None:
        return carried, []
    found = [*_limit_problems(carried.limits, stated.positions), *_pair_problems(carried)]
    return Carried() if found else carried, [f"{stated.inner}{problem}" for problem in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stated:
    """What a folder states.

    Attributes:
        value: Not looked at yet.
        place: Of it, in errors.
        inner: What stands before the name of something in it, in errors.
        positions: Rows of the folder's position table, if it says that.
    """

    value: object
    place: str
    inner: str
    positions: object = None


def _stated(folder: Path) -> _Stated | None:
    """The value; None where there is none.

    Raises:
        CheckpointError: Its own file cannot be read.
        ConfigError: It is not JSON.
    """
    if (folder / CARRIED_FILE).is_file():
        value = parse_json(read_limited(folder / CARRIED_FILE, _MAX_BYTES))
        return _Stated(value=value, place=CARRIED_FILE, inner=f"{CARRIED_FILE}: ")
    try:
        config = parse_json(read_limited(folder / CONFIG_FILE, _MAX_BYTES))
    except (CheckpointError, ConfigError):
        return None
    if not isinstance(config, dict) or CARRIED_KEY not in config:
        return None
    place = f"{CONFIG_FILE}: {CARRIED_KEY}"
    return _Stated(
        value=config[CARRIED_KEY],
        place=place,
        inner=f"{place}.",
        positions=config.get(_POSITIONS),
    )


def _known(value: object) -> object:
    """The value without what a later version may carry along."""
    if not isinstance(value, Mapping):
        return value
    names = {field.name for field in fields(Carried)}
    return {name: item for name, item in value.items() if name in names}


def _limit_problems(limits: LengthLimits | None, positions: object) -> Iterator[str]:
    """Limits that no network has, or beyond the position table."""
    rows = positions if type(positions) is int and positions > 0 else None
    for name, length in () if limits is None else asdict(limits).items():
        if not 1 <= length <= MAX_LENGTH:
            yield f"limits.{name} is {shown(length)}; it must be from 1 to {MAX_LENGTH}"
        elif rows is not None and length > rows:
            yield f"limits.{name} is {length}; {_POSITIONS} is {rows}"


def _pair_problems(carried: Carried) -> Iterator[str]:
    """More directions than are read, and tags that are none."""
    if len(carried.pairs) > MAX_PAIRS:
        yield f"pairs has {len(carried.pairs)} entries; at most {MAX_PAIRS} are read"
        return
    tags = dict.fromkeys(tag for pair in carried.tags for tag in pair)
    if len(tags) > MAX_LANGUAGES:
        yield f"pairs has {len(tags)} languages; at most {MAX_LANGUAGES} are read"
        return
    for tag in tags:
        try:
            canonical = canonical_tag(tag)
        except InputError as error:
            yield f"pairs: {error}"
        else:
            if canonical != tag:
                yield f"pairs has the language {shown(tag)}; it must be {canonical!r}"
