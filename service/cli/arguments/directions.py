"""Choice of a checkpoint and a direction by the flags of an offline command.

Owns what `--checkpoint`, `DRAGOMAN_CHECKPOINT`, `--from`, `--to` and `--model` say together. Where
checkpoints are, what a language is called, and which of several checkpoints translates it, is what
the server says.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.errors import CheckpointError, ConfigError, DataError, InputError, shown
from model.system.paths import is_folder
from model.text.languages.scripts import (
    UNSPACED_LANGUAGES,
    is_of_language,
    script_of_language,
)
from model.text.languages.tags import (
    LanguagePair,
    lenient_tag,
    lookup_tags,
    primary_language,
)
from service.api.languages import AUTO, LIBRETRANSLATE_ALIASES, find_tags
from service.checkpoint_folder import named_checkpoints, preferred_checkpoints
from service.models.checkpoints.discovery import find_checkpoints
from service.models.routes.routing import Offer, ranks_of

if TYPE_CHECKING:
    from model.text.languages.detection import Detection

_SURE = 75
"""Per cent from which a detected language goes before the only one that could be meant."""
_NUM_WORDS = 4
"""As many at least, too: names, and words that two languages have, seem sure to be of one."""
_NUM_LETTERS = 2
"""That suffice where they are of another script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One direction of one checkpoint.

    Attributes:
        directory: The checkpoint.
        name: Of the checkpoint.
        pair: Its languages.
    """

    directory: Path
    name: str
    pair: LanguagePair


def chosen_direction(arguments: argparse.Namespace, path: Path | None) -> Direction:
    """The one direction that the flags leave.

    Where several checkpoints have it, the server's choice, which is told on standard error.

    Args:
        arguments: Those of `add_pair_arguments`.
        path: A checkpoint, or a folder of several; None for those that the environment names, or
            the bundled ones.

    Raises:
        CheckpointError: A description is missing or damaged.
        ConfigError: There is no checkpoint, or none of that name; or the flags leave no
            direction, or several.
    """
    fitting, complaint = _fitting_directions(arguments, path)
    if len(fitting) == 1:
        return fitting[0]
    raise ConfigError(complaint)


def chosen_or_same(
    arguments: argparse.Namespace,
    path: Path | None,
    *,
    sample: Callable[[], str | None],
    is_whole: bool = True,
) -> Direction | None:
    """As `chosen_direction`; None where no checkpoint is needed, as the text is in that language.

    Where only the source language is open, the text says it, which is told on standard error: of
    several directions it chooses one, and one that is left is refused if the text is surely in
    another of the languages that there are.

    Args:
        arguments: As of `chosen_direction`.
        path: As of `chosen_direction`.
        sample: Some of the text; None if it cannot be looked at beforehand, or is not known.
        is_whole: That is all of it; the beginning of a file never says that it needs no checkpoint.

    Raises:
        CheckpointError: As of `chosen_direction`.
        ConfigError: As of `chosen_direction`.
        DataError: As of `sample`.
    """
    fitting, complaint = _fitting_directions(arguments, path)
    text = _sample_of_open(arguments.source_language, fitting, sample)
    if text is None:
        if not fitting and _is_same(arguments.source_language, arguments.target_language):
            return None
        if len(fitting) == 1:
            return fitting[0]
        raise ConfigError(complaint)
    if len(fitting) == 1:
        offered = _directions(_named(_path(path), arguments.model))
        return _unless_other(fitting[0], text, offered, is_whole=is_whole)
    found = _source_by(text, fitting, complaint, is_whole=is_whole)
    if found is None:
        return None
    arguments.source_language = found
    return chosen_direction(arguments, path)


def _sample_of_open(
    source: str | None, fitting: Sequence[Direction], sample: Callable[[], str | None]
) -> str | None:
    """Some of the text where only the source language is open; else None.

    Raises:
        DataError: As of `sample`, where the text has to say something.
    """
    if source not in (None, AUTO) or len({one.pair.target for one in fitting}) != 1:
        return None
    try:
        return sample()
    except DataError:
        if len(fitting) != 1:
            raise
        return None  # the translation comes to it by itself, and keeps what is before it


def _source_by(
    text: str, fitting: Sequence[Direction], complaint: str, *, is_whole: bool
) -> str | None:
    """The source language that a text says, of several; None for one that is translated already.

    Raises:
        ConfigError: A file begins in the target's language, or in none that there is, and nothing
            says more.
    """
    sources = [one.pair.source for one in fitting]
    target = fitting[0].pair.target
    detected = _detected(text, [*sources, target])
    found = detected.tag
    if detected.confidence == 0 and not is_whole and any(map(str.isalpha, text)):
        raise ConfigError(complaint)
    if found != target or is_whole:
        _tell(found)
        return None if found == target else found
    guess = _detected(text, sources)
    if guess.confidence == 0:
        raise ConfigError(complaint)
    _tell_beginning(target, guess.tag)
    return guess.tag


def _unless_other(
    direction: Direction, text: str, offered: Sequence[Direction], *, is_whole: bool
) -> Direction | None:
    """The one direction that fits; None for a text that is in its target's language already.

    Raises:
        ConfigError: The text is surely in another language that is there, and none goes from that
            one.
    """
    pair = direction.pair
    others = [tag for one in offered for tag in (one.pair.source, one.pair.target)]
    found = _detected(text, [pair.source, pair.target, *others])
    is_sure = found.confidence >= _SURE and _says_enough(text, found.tag, pair.source)
    if found.tag == pair.source or not is_sure:
        return direction
    if found.tag == pair.target and not is_whole:
        _tell_beginning(pair.target, pair.source)
        return direction
    _tell(found.tag)
    if found.tag == pair.target:
        return None
    raise ConfigError(
        f"no checkpoint goes from {found.tag} to {pair.target}; give --from {pair.source} if the"
        f" text is in that language"
    )


def _says_enough(text: str, tag: str, source: str) -> bool:
    """Whether a text in what seems one language is long enough not to be in another one."""
    num_letters = sum(is_of_language(letter, tag) for letter in text if letter.isalpha())
    if script_of_language(tag) != script_of_language(source):
        return num_letters >= _NUM_LETTERS
    if primary_language(tag) in UNSPACED_LANGUAGES:
        return num_letters >= _NUM_WORDS * _NUM_LETTERS
    return sum(any(map(str.isalpha, word)) for word in text.split()) >= _NUM_WORDS


def _detected(text: str, tags: Sequence[str]) -> "Detection":
    from model.text.languages.detection import TextDetector

    return TextDetector(tags).detect(text)


def _tell(found: str) -> None:
    print(f"dragoman: the text is taken as {found}; --from says it otherwise", file=sys.stderr)


def _tell_beginning(target: str, source: str) -> None:
    print(
        f"dragoman: the beginning seems to be in {target} already; all is translated from {source};"
        " --from says it otherwise",
        file=sys.stderr,
    )


def _path(path: Path | None) -> Path:
    return named_checkpoints(os.environ) if path is None else path


def _fitting_directions(
    arguments: argparse.Namespace, path: Path | None
) -> tuple[list[Direction], str]:
    """All directions that the flags leave, and what to say if that is not one."""
    path = _path(path)
    is_folder(path, CheckpointError)  # what the system says of the path as it was written
    found = _named(path, arguments.model)
    offered = _directions(found)
    known = [tag for one in offered for tag in (one.pair.source, one.pair.target)]
    source, target = arguments.source_language, arguments.target_language
    sources = set(known) if source == AUTO else _meant(source, known)
    targets = _meant(target, known)
    fitting = [one for one in offered if one.pair.source in sources and one.pair.target in targets]
    if len({(one.pair.source, one.pair.target) for one in fitting}) == 1 < len(fitting):
        fitting = [_best(fitting, found)]
    return fitting, _complaint(path, offered, fitting, source, target)


def _directions(found: Sequence[tuple[Path, Manifest]]) -> list[Direction]:
    return [
        Direction(directory=directory, name=manifest.name, pair=pair)
        for directory, manifest in found
        for pair in manifest.pairs
    ]


def check_unreplaced(direction: Direction, manifest: Manifest) -> None:
    """Refuse a checkpoint that no longer has the direction that was chosen.

    Raises:
        CheckpointError: Another one has taken its place.
    """
    if direction.pair not in manifest.pairs:
        raise CheckpointError(direction.directory, "was replaced meanwhile; do it again")


def single_checkpoint(path: Path, model: str | None = None) -> Path:
    """The checkpoint at a path, for a command that chooses none by its languages.

    Args:
        path: A checkpoint, or a folder of several.
        model: The name of one of these.

    Raises:
        CheckpointError: The system does not tell what is there.
        ConfigError: There are several, or none of that name.
    """
    if not is_folder(path, CheckpointError):
        return path  # reading it says what is missing
    found = find_checkpoints(path)
    if model is not None:
        return _named(path, model)[0][0]
    if len(found) > 1:
        found = tuple(one for one in found if (one / CONFIG_FILE).exists()) or found
    if len(found) > 1:
        names = ", ".join(directory.name for directory in found)
        raise ConfigError(f"{path} has {len(found)} checkpoints; name one of {names}")
    return found[0]


def _named(path: Path, model: str | None) -> list[tuple[Path, Manifest]]:
    """The checkpoints at a path, or the one of that name; of two with one name the first.

    What cannot be read is told and left out, as the server does, unless nothing else is there.

    Raises:
        CheckpointError: Nothing can be read.
        ConfigError: There is none of that name.
    """
    found: dict[str, tuple[Path, Manifest]] = {}
    faults: list[CheckpointError] = []
    for directory in find_checkpoints(path):
        try:
            manifest = read_manifest(directory)
        except CheckpointError as error:
            faults.append(error)
        else:
            found.setdefault(manifest.name, (directory, manifest))
    if not found:
        raise faults[0]
    for fault in faults:
        print(f"dragoman: warning: left out: {fault}", file=sys.stderr)
    if model is None:
        return list(found.values())
    if model not in found:
        raise ConfigError(f"--model is {shown(model)}; {path} has {', '.join(found)}")
    return [found[model]]


def _best(fitting: Sequence[Direction], found: Sequence[tuple[Path, Manifest]]) -> Direction:
    """Of directions with the same languages the one that the server takes; tells which."""
    offers = [Offer(name=manifest.name, pairs=manifest.pairs) for _, manifest in found]
    ranks = ranks_of(offers, preferred_checkpoints(os.environ))
    best, *others = sorted(fitting, key=lambda one: ranks[one.name])
    names = ", ".join(one.name for one in others)
    print(
        f"dragoman: {best.pair.source} → {best.pair.target} by {best.name};"
        f" --model names another one: {names}",
        file=sys.stderr,
    )
    return best


def _meant(code: str | None, known: Sequence[str]) -> set[str]:
    """The languages that a code leaves: all without one, none where it is not loaded."""
    if code is None:
        return set(known)
    try:
        tags = find_tags(code, LIBRETRANSLATE_ALIASES, known)
    except InputError:
        tags = []
    return set(tags[:1])


def _is_same(source: str | None, target: str | None) -> bool:
    """Whether two codes mean one language."""
    if source is None or target is None:
        return False
    try:
        first, second = (
            lookup_tags(LIBRETRANSLATE_ALIASES.get(code.lower()) or lenient_tag(code))
            for code in (source, target)
        )
    except InputError:
        return False
    return not set(first).isdisjoint(second)


def _complaint(
    path: Path,
    offered: Sequence[Direction],
    fitting: Sequence[Direction],
    source: str | None,
    target: str | None,
) -> str:
    is_one = len({one.directory for one in offered}) == 1
    loaded = ", ".join(
        f"{one.pair.source} → {one.pair.target}" + ("" if is_one else f" ({one.directory.name})")
        for one in offered
    )
    has = "the checkpoint has" if is_one else f"{path} has"
    flags = (("--from", source), ("--to", target))
    asked = [f"{flag} {code or shown(code)}" for flag, code in flags if code is not None]
    if not asked:
        return f"which language? Give --from and --to; {has} {loaded}"
    return f"{len(fitting)} language pairs fit {' '.join(asked)}; {has} {loaded}"
