"""`dragoman pull`: a model by its name, downloaded, verified, converted, ready to be served.

Owns the flags, what is shown before a download and what is asked. Names and registries are
`model.exchange.registry`'s, the conversion `model.exchange.imports`', the place of the checkpoint
`service.cli.models.pulled`'s.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import ConfigError, InputError, UnreadableModelError, one_line
from model.exchange.imports.languages import typed_tag
from model.system.paths import is_file
from service.cli.models import convert as conversion
from service.cli.models.pulled import Place, place_of
from service.cli.models.registry_text import described, human_bytes
from service.cli.signals import leaving_at_once

if TYPE_CHECKING:
    from model.checkpoint.manifest import Manifest
    from model.exchange.registry.cache import Cache
    from model.exchange.registry.listing import Listing
    from model.exchange.registry.sources import Sources

HELP = "download a model by its name, and make a checkpoint of it that `dragoman serve` has"
_MAX_LOOKUPS = 3
"""Tries of a registry's answer, fewer than those of a file: what was kept may stand in."""
STORED_TYPES = ("int8", "float16", "bfloat16", "float32")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "name",
        help="hf:OWNER/NAME, firefox:de-en, argos:en-de, opus:en-de/FILE.zip, the URL of an"
        " archive, or a path",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="folder of checkpoints that it is put into (that which is served)",
    )
    parser.add_argument(
        "--as", dest="checkpoint_name", metavar="NAME", help="what the checkpoint is called"
    )
    parser.add_argument(
        "--compute",
        choices=STORED_TYPES,
        default="int8",
        help="how matrices are stored (int8)",
    )
    parser.add_argument(
        "--pair",
        dest="pairs",
        action="append",
        default=[],
        metavar="SOURCE:TARGET",
        help="a direction, where the model does not say it or not all are wanted; may be repeated",
    )
    conversion.add_family_argument(parser)
    parser.add_argument("--yes", action="store_true", help="ask nothing before the download")
    parser.add_argument(
        "--accept-licence",
        metavar="SPDX",
        help="accept a licence that restricts the use of the weights; remembered",
    )
    parser.add_argument(
        "--replace", action="store_true", help="take the place of another version of the model"
    )


def print_error(error: Exception | str) -> None:
    """As `dragoman convert` does, with the flag of this command."""
    conversion.print_problems(error, naming_directions="--pair de:en, which may be repeated")


def run(arguments: argparse.Namespace) -> int:
    """Look up, show, download, verify, convert; print where the checkpoint is.

    Raises:
        ConfigError: The name means nothing, the licence is not accepted, the place is taken, or
            there is no room.
        RegistryError: The registry has no such model, or it is not what is listed.
        ForeignModelError: The model cannot be converted.
        CheckpointError: The checkpoint cannot be written.
    """
    from model.exchange.imports.huggingface.folder import folder_name
    from model.exchange.registry.cache import cache_of
    from model.exchange.registry.names import LocalName, parse_name
    from model.exchange.registry.retries import Retries
    from model.exchange.registry.sources import sources_of

    name = parse_name(arguments.name)
    _pairs_of(arguments.pairs)  # a misspelt one is told before the download
    cache = cache_of(os.environ)
    if isinstance(name, LocalName):
        path = Path(os.path.realpath(name.path))
        own_name = path.stem if is_file(path) else folder_name(path)
        place = place_of(arguments.to, arguments.checkpoint_name or own_name, cache)
        with place.locked(_print_wait):
            place.check_free()
            _convert(arguments, name.path, place, cache, listing=None)
        print(place.path)
        return 0
    sources = sources_of(os.environ, cache, Retries(max_tries=_MAX_LOOKUPS))
    listing = sources.find(name)
    for problem in sources.documents.stale:
        print(f"dragoman: {problem}; what was kept of it is used", file=sys.stderr)
    place = place_of(arguments.to, arguments.checkpoint_name or listing.folder, cache)
    with place.locked(_print_wait):
        if place.is_wanted(listing, arguments.compute, is_replacing=arguments.replace):
            wanted = _Wanted(listing=listing, place=place, cache=cache, sources=sources)
            _pull(arguments, wanted)
        else:
            print(f"{place.path} is that already", file=sys.stderr)
    print(place.path)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Model that is pulled, its place, and the way there."""

    listing: "Listing"
    place: Place
    cache: "Cache"
    sources: "Sources"


def _print_wait() -> None:
    print("dragoman: another process pulls the same; waiting for it", file=sys.stderr)


def _pull(arguments: argparse.Namespace, wanted: _Wanted) -> None:
    from model.exchange.registry.licences import check_accepted
    from model.exchange.registry.pulling import distrust, missing_bytes

    listing, cache = wanted.listing, wanted.cache
    print(described(listing), file=sys.stderr)
    if listing.licence is not None:
        check_accepted(listing.licence, cache.accepted_licences, accepting=arguments.accept_licence)
    if missing := missing_bytes(listing, cache):
        _ask(arguments, f"Download {human_bytes(missing)} and convert it?")
    source = _downloaded(wanted)
    try:
        _convert(arguments, source, wanted.place, cache, listing=listing)
    except UnreadableModelError:
        distrust(listing, cache)
        raise


def _ask(arguments: argparse.Namespace, question: str) -> None:
    """Ask, where somebody can answer.

    Raises:
        ConfigError: The answer is no.
    """
    if arguments.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"", "y", "yes"}:
        raise ConfigError("nothing was downloaded")


def _downloaded(wanted: _Wanted) -> Path:
    """The folder or archive of the verified files."""
    from tqdm import tqdm

    from model.exchange.registry.download import Downloader
    from model.exchange.registry.pulling import pull
    from model.exchange.registry.retries import Retries

    with tqdm(
        total=wanted.listing.known_bytes or None,
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        disable=not sys.stderr.isatty(),
        file=sys.stderr,
    ) as bar:

        def advance(num_bytes: int) -> None:
            bar.update(num_bytes)

        downloader = Downloader(
            transport=wanted.sources.transport,
            retries=Retries(),
            advance=advance,
        )
        return pull(wanted.listing, wanted.cache, downloader, on_wait=_print_wait)


def _convert(
    arguments: argparse.Namespace,
    source: Path,
    place: Place,
    cache: "Cache",
    *,
    listing: "Listing | None",
) -> None:
    """Convert; what only the files say of the licence is told, and counts, before it is written."""
    from model.exchange.registry.licences import check_accepted

    stated = None if listing is None else listing.licence

    def approve(manifest: "Manifest") -> None:
        if stated is None:
            print(f"licence, as the files say: {one_line(manifest.licence)}", file=sys.stderr)
            accepting = arguments.accept_licence
            check_accepted(manifest.licence, cache.accepted_licences, accepting=accepting)

    with place.filling() as destination:
        _write(arguments, source, destination, place.path.name, listing, approve=approve)
        if listing is not None:
            place.remember(destination, listing, arguments.compute)


def _write(
    arguments: argparse.Namespace,
    source: Path,
    destination: Path,
    called: str,
    listing: "Listing | None",
    *,
    approve: Callable[["Manifest"], None],
) -> None:
    from tqdm import tqdm

    with leaving_at_once():
        from model.exchange.imports.convert import convert
        from model.exchange.imports.formats import IMPORTERS
        from model.exchange.imports.imported import ImportOptions

    pairs = _pairs_of(arguments.pairs)
    if not pairs and listing is not None and listing.has_exact_pairs:
        pairs = listing.pairs
    with tqdm(
        unit=" weights", unit_scale=True, disable=not sys.stderr.isatty(), file=sys.stderr
    ) as bar:

        def show(written: int, total: int) -> None:
            bar.total = total
            bar.update(written - bar.n)

        convert(
            source,
            destination,
            importers=IMPORTERS,
            compute=arguments.compute,
            name=called,
            licence=None if listing is None else listing.licence,
            options=ImportOptions(pairs=pairs, family=arguments.family),
            command=_command(arguments, arguments.name if listing is None else listing.name),
            approve=approve,
            progress=show,
        )


def _pairs_of(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The directions that `--pair` names, as canonical tags.

    Raises:
        ConfigError: One is none.
    """
    pairs = []
    for text in texts:
        source, colon, target = text.partition(":")
        try:
            if not colon:
                raise ConfigError("--pair is a direction such as de:en")
            pairs.append((typed_tag(source), typed_tag(target)))
        except InputError as error:
            raise ConfigError(f"--pair: {error}") from error
    return tuple(dict.fromkeys(pairs))


def _command(arguments: argparse.Namespace, name: str) -> str:
    """What makes the same checkpoint again; of a path only its last part."""
    name = name if ":" in name else Path(name).name
    words = ["dragoman", "pull", name, "--compute", arguments.compute]
    for pair in arguments.pairs:
        words += ["--pair", pair]
    words += [] if arguments.family is None else ["--family", arguments.family]
    return shlex.join(words)
