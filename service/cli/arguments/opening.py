"""Translators of offline commands: the chosen checkpoint, loaded as the flags say.

Owns the loading and its order. Which checkpoint is meant is `service.cli.arguments.directions`,
whether the machine has the memory `model.offline.opening`.
"""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.system.devices import resolve_device
from service.cli.arguments.directions import Direction, check_unreplaced
from service.cli.signals import leaving_at_once

if TYPE_CHECKING:
    from model.offline.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A translator, and what it was made of.

    Attributes:
        translator: Ready to translate.
        compute_type: Its arithmetic.
        fingerprint: Of the checkpoint's files.
    """

    translator: "Translator"
    compute_type: str
    fingerprint: str


def opened_by_flags(
    direction: Direction, arguments: argparse.Namespace, *, num_threads: int, max_rows: int
) -> Opened:
    """The translator of a direction, with the device, arithmetic and shortlist of the flags.

    Raises:
        CheckpointError: The checkpoint cannot be used, or was replaced meanwhile.
        ConfigError: There is no such device or arithmetic here.
    """
    with leaving_at_once():
        from model.checkpoint.files.checksums import fingerprint, unreplaced
        from model.loading import load_for_decoding
        from model.offline.opening import opened_translator

    device = resolve_device(arguments.device)
    with unreplaced(direction.directory):
        checkpoint = load_for_decoding(
            direction.directory,
            device=device,
            compute_type=arguments.compute_type,
            with_shortlist=arguments.shortlist,
            num_threads=num_threads,
        )
        name = fingerprint(direction.directory)
    check_unreplaced(direction, checkpoint.manifest)
    translator = opened_translator(
        direction.directory, checkpoint, device=device, max_rows=max_rows
    )
    return Opened(translator=translator, compute_type=checkpoint.compute_type, fingerprint=name)
