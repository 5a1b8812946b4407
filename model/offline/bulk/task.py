"""Task of the workers of a job: how texts are translated, and where parts are written.

Owns the description, which is the same for this process and for one on another machine; what of it
the output depends on; and the opening of the network that it names. Nothing of it is a tensor or an
open file.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from model.arithmetic import ComputeType
from model.checkpoint.files.checksums import fingerprint, unreplaced
from model.config import SearchConfig
from model.errors import CheckpointError
from model.loading import load_for_decoding
from model.offline.bulk.job import Fact, Job
from model.offline.opening import opened_translator
from model.offline.translator import Translator
from model.text.constraints.control import Control
from model.text.languages.tags import LanguagePair


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Method by which every text of a job is translated.

    Attributes:
        checkpoint: Its folder, the same path on every machine.
        fingerprint: Of its files.
        device: Where the network runs.
        compute_type: Its arithmetic, the same on every machine.
        with_shortlist: Whether sentences choose from the checkpoint's lexical shortlist.
        num_threads: Threads of the network, in each worker.
        max_rows: Beam rows that run at once.
        pair: Direction.
        search: Of all texts.
        control: What is wanted of each text.
        max_characters: Of a text; a longer one is a bad cell.
    """

    checkpoint: Path
    fingerprint: str
    device: str
    compute_type: ComputeType
    with_shortlist: bool
    num_threads: int
    max_rows: int
    pair: LanguagePair
    search: SearchConfig
    control: Control
    max_characters: int

    @property
    def facts(self) -> dict[str, Fact]:
        """What the output depends on, by the names that errors have."""
        search, glossary = self.search, self.control.glossary
        drawn = search.sampling
        return {
            "checkpoint": self.fingerprint[:16],
            "source language": self.pair.source,
            "target language": self.pair.target,
            "compute type": self.compute_type,
            "shortlist": self.with_shortlist,
            "beam size": search.beam_size,
            "length penalty": search.length_penalty,
            "sampling": None if drawn is None else repr(drawn),
            "beam groups": None if search.num_groups == 1 else search.num_groups,
            "diversity penalty": search.diversity_penalty or None,
            "no repeat n-gram": search.no_repeat_ngram or None,
            "prefix": self.control.target_prefix,
            "glossary": None if glossary is None else _digest(repr(glossary.entries)),
            "longest text": self.max_characters,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Task that all workers of a job have in common.

    Attributes:
        job: It; a worker is told its blocks one by one, so they may be left out.
        output: Path or URL of the output folder.
        method: How texts are translated.
    """

    job: Job
    output: str
    method: Method


def open_network(method: Method) -> Translator:
    """The translator of a job.

    Raises:
        CheckpointError: The checkpoint is missing or damaged, is another one, or needs more memory
            than there is.
        UnsupportedVariantError: The arithmetic cannot be had here.
    """
    directory = method.checkpoint
    with unreplaced(directory):
        found = fingerprint(directory)
        if found != method.fingerprint:
            raise CheckpointError(
                directory,
                f"is another checkpoint here: {found[:16]}, and the job's is"
                f" {method.fingerprint[:16]}",
            )
        checkpoint = load_for_decoding(
            directory,
            device=method.device,
            compute_type=method.compute_type,
            with_shortlist=method.with_shortlist,
            num_threads=method.num_threads,
        )
    return opened_translator(directory, checkpoint, device=method.device, max_rows=method.max_rows)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
