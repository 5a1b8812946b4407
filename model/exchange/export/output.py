"""Common part of all exports: what they refuse, how many positions they state, where they write.

Owns the list of reasons, the directory that appears whole or not at all, and the page that tells
under which licence the weights are, which other engines' formats have no place for. It knows no
format.
"""

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from model.checkpoint.manifest import Manifest
from model.errors import CheckpointError, UnsupportedVariantError
from model.exchange.model_card import CARD_FILE, format_head
from model.honoured import Condition, HonouredFields, unsupported_fields
from model.system.paths import exists

MIN_POSITIONS = 1024
_NO_SHORTLIST = """
The checkpoint has a lexical shortlist, which this format has no place for: it is not here.
"""

EVEN_QUERIES = Condition(
    name="d_model / num_heads",
    holds=lambda network: network.query_width * network.num_heads == network.d_model,
)
"""Of `d_k`: heads that divide the width of the network among them, as other engines have them."""

EVEN_VALUES = Condition(
    name="d_model / num_heads",
    holds=lambda network: network.value_width * network.num_heads == network.d_model,
)
"""The same of `d_v`."""


def some_layers(name: str) -> Condition:
    """Of a number of layers: targets that have no stack without any."""
    return Condition(name="1 or more", holds=lambda network: getattr(network, name) > 0)


def num_positions(manifest: Manifest) -> int:
    """Rows of a position table that holds every sentence within the checkpoint's limits.

    The decoder's first input is the start token, and its last one precedes the last EOS.
    """
    limits = manifest.limits
    return max(MIN_POSITIONS, limits.max_source_length, manifest.max_target_positions)


def export_problems(manifest: Manifest, honoured: HonouredFields) -> list[str]:
    """What a target does not express, as sentence fragments.

    Args:
        manifest: Of the checkpoint.
        honoured: What the target says of a network; no target forces a first token.
    """
    problems = unsupported_fields(manifest.network, honoured)
    if manifest.tokens.forced_first_id is not None:
        problems.append(
            f"tokens.forced_first_id is {manifest.tokens.forced_first_id} (only no forced token)"
        )
    return problems


def refuse(target: str, problems: Sequence[str]) -> None:
    """Raise if there is any problem.

    Raises:
        UnsupportedVariantError: With all of them.
    """
    if problems:
        raise UnsupportedVariantError(f"{target} cannot express this: {'; '.join(problems)}")


def write_licences(folder: Path, manifest: Manifest, *, before: str = "", after: str = "") -> None:
    """Write README.md: the weights' licence, and every corpus with its own; what was left out.

    Licences go with the weights wherever they are passed on to. The head says that of the weights
    to programs: the hub, and the import.

    Args:
        folder: Where.
        manifest: Of the checkpoint.
        before: What a format says in this file, too, before all licences.
        after: The same, after them.
    """
    rows = [
        f"- {each.corpus}: {each.licence}" + (f", {each.url}" if each.url else "")
        for each in manifest.licences
    ]
    opening = before and before + "\n"
    page = format_head(manifest.licence) + (
        f"\n# {manifest.name}\n\n{manifest.description}\n\n{opening}"
        f"The weights are under {manifest.licence}. Dragoman exported them from a checkpoint that"
        f" {'learned from' if rows else 'does not say what it learned from.'}\n\n"
    )
    left_out = "" if manifest.shortlist is None else _NO_SHORTLIST
    page += "\n".join(rows) + "\n" + left_out + after
    (folder / CARD_FILE).write_text(page, encoding="utf-8")


@contextmanager
def new_directory(output: Path) -> Iterator[Path]:
    """A directory to fill, which becomes `output` when the block ends without an error.

    Raises:
        CheckpointError: `output` exists, or cannot be written.
    """
    output = output.absolute()
    if exists(output, CheckpointError) or output.is_symlink():
        raise CheckpointError(output, "exists; an export replaces nothing")
    partial = output.with_name(f".{output.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.mkdir()
        yield partial
        partial.rename(output)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(output, f"cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
