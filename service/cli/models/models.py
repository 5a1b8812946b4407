"""`dragoman models`: the models that are here, and those that can be had for a direction.

Owns the flags, and what is told of a registry that does not answer. How a model is fetched is
`service.cli.models.pull`'s.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.errors import CheckpointError, ConfigError, DragomanError, InputError
from model.system.paths import exists
from model.text.languages.tags import lenient_tag, lookup_tags, primary_language
from service.api.languages import LIBRETRANSLATE_ALIASES
from service.checkpoint_folder import named_checkpoints
from service.cli.models.registry_text import directions, human_bytes, offer_rows, table
from service.cli.signals import leaving_at_once
from service.models.checkpoints.discovery import find_checkpoints

if TYPE_CHECKING:
    from model.exchange.registry.listing import Offer
    from model.exchange.registry.sources import Offering

HELP = "list the models that are here, and with --remote those that can be had"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--checkpoint", type=Path, help="folder of checkpoints (that which is served)"
    )
    parser.add_argument("--from", dest="source_language", metavar="LANGUAGE", help="only from it")
    parser.add_argument("--to", dest="target_language", metavar="LANGUAGE", help="only to it")
    parser.add_argument(
        "--remote",
        action="store_true",
        help="also ask the registries what they have; needs --from and --to",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what is here, then what can be had.

    Raises:
        ConfigError: The flags are impossible, or the folder that is named has no checkpoint.
    """
    source, target = (
        _tag("--from", arguments.source_language),
        _tag("--to", arguments.target_language),
    )
    if arguments.remote and (source is None or target is None):
        raise ConfigError("--remote needs --from and --to: the registries have thousands of models")
    named = arguments.checkpoint
    folder = named_checkpoints(os.environ) if named is None else named
    _print_local(folder, source, target, may_be_none=named is None)
    if source is not None and target is not None:
        print()
        if arguments.remote:
            _print_remote(source, target)
        else:
            flags = f"--from {arguments.source_language} --to {arguments.target_language}"
            print(f"what can be had: dragoman models {flags} --remote")
    return 0


def _print_local(
    folder: Path, source: str | None, target: str | None, *, may_be_none: bool
) -> None:
    try:
        found = find_checkpoints(folder)
    except ConfigError as error:
        if not may_be_none:
            raise
        print(f"here: nothing ({error})")
        return
    with leaving_at_once():
        from model.system.devices import resolve_device

    device = resolve_device("auto")
    rows = [("NAME", "DIRECTIONS", "LICENCE", "SIZE", "RUNS IN")]
    for directory in found:
        row = _local_row(directory, source, target, device)
        rows += [] if row is None else [row]
    print(table(rows) if len(rows) > 1 else f"here: nothing for that direction in {folder}")


def _local_row(
    directory: Path, source: str | None, target: str | None, device: str
) -> tuple[str, str, str, str, str] | None:
    """What is said of a checkpoint; None of one that has not the direction."""
    from model.loading import automatic_compute_type

    try:
        if not exists(directory / CONFIG_FILE, CheckpointError):
            return None
        manifest = read_manifest(directory, verify=False)
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return (directory.name, "faulty", "", "", "")
    if not _has_direction(manifest, source, target):
        return None
    pairs = [(pair.source, pair.target) for pair in manifest.pairs]
    size = sum(path.stat().st_size for path in directory.iterdir() if path.is_file())
    compute_type = automatic_compute_type(manifest, device)
    return (manifest.name, directions(pairs), manifest.licence, human_bytes(size), compute_type)


def _has_direction(manifest: Manifest, source: str | None, target: str | None) -> bool:
    return any(
        (source is None or pair.source in lookup_tags(source))
        and (target is None or pair.target in lookup_tags(target))
        for pair in manifest.pairs
    )


def _print_remote(source: str, target: str) -> None:
    from model.exchange.registry.cache import cache_of
    from model.exchange.registry.retries import Retries
    from model.exchange.registry.sources import sources_of

    sources = sources_of(os.environ, cache_of(os.environ), Retries(max_tries=1))
    offers: list[Offer] = []
    for name, registry in sources.offering():
        try:
            offers += _offers_of(registry, source, target)
        except DragomanError as error:
            print(f"dragoman: {name} is left out: {error}", file=sys.stderr)
    for problem in sources.documents.stale:
        print(f"dragoman: {problem}; what was kept of it is used", file=sys.stderr)
    if offers:
        print(table(offer_rows(offers)))
    else:
        print(f"to be had: nothing is known from {source} to {target}")


def _offers_of(registry: "Offering", source: str, target: str) -> Sequence["Offer"]:
    """What a registry has, for the language without its script or region too."""
    for one in _spellings(source):
        for other in _spellings(target):
            if offers := registry.offers(one, other):
                return offers
    return ()


def _spellings(tag: str) -> list[str]:
    """A tag, and what registries may write instead of it."""
    return list(dict.fromkeys([*lookup_tags(tag), primary_language(tag)]))


def _tag(flag: str, code: str | None) -> str | None:
    """A language as its canonical tag.

    Raises:
        ConfigError: It is none.
    """
    if code is None:
        return None
    try:
        return LIBRETRANSLATE_ALIASES.get(code.lower()) or lenient_tag(code)
    except InputError as error:
        raise ConfigError(f"{flag}: {error}") from error
