"""The rivals' engines behind one small interface; each runs in a process of its own.

Owns how each engine is opened and asked as its own documentation advises. Only `Job.run` is
timed: what comes before turns ids into what the engine reads (tuples, strings, padded tensors),
what comes after turns its answers into ids.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

import sentencepiece

from benchmarks.peers.work import Work
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.config import SearchConfig, SpecialTokens

if TYPE_CHECKING:
    import ctranslate2
    import transformers

    from model.loading import Runnable
    from model.offline.translator import Translator
    from model.request import DecodeRequest, Hypothesis

Settings = Mapping[str, int | str]
EngineName = Literal["dragoman", "ctranslate2", "huggingface"]
_HUGGINGFACE_BATCH = 32


class Job(Protocol):
    """Prepared work of one engine."""

    def run(self) -> None:
        """Translate: the part that is timed."""

    def targets(self) -> list[list[int]]:
        """Target ids of every sentence, without EOS, in order."""


class Engine(Protocol):
    """An engine whose libraries are imported; it has no weights before `load`."""

    def load(self, settings: Settings) -> None:
        """Read the weights."""

    def prepare(self, work: Work, settings: Settings) -> Job:
        """Make ready what the engine reads."""


def make_engine(
    name: EngineName, *, models: Path, compute_type: Literal["int8", "float32"], num_threads: int
) -> Engine:
    """Import an engine's libraries and give them their threads.

    Args:
        name: Which.
        models: What `benchmarks.peers.models` wrote.
        compute_type: Dragoman's arithmetic; the others have theirs in their settings.
        num_threads: For one sentence or batch; CTranslate2's settings divide them up.
    """
    if name == "dragoman":
        return Dragoman(models, compute_type=compute_type, num_threads=num_threads)
    if name == "ctranslate2":
        return CTranslate2(models)
    return HuggingFace(models, num_threads=num_threads)


class Dragoman:
    """Our offline translator, from ids to ids."""

    def __init__(
        self, models: Path, *, compute_type: Literal["int8", "float32"], num_threads: int
    ) -> None:
        import torch  # noqa: PLC0415  # the other engines' processes must not hold it
        from pydantic import TypeAdapter  # noqa: F401, PLC0415  # what reads a manifest imports it

        import model.offline.translator  # noqa: F401, PLC0415  # imported before memory is looked at

        # As the service does: beside the kernels' own threads torch has only small work.
        torch.set_num_threads(1 if compute_type == "int8" else num_threads)
        self._directory = models / "checkpoint"
        self._compute_type = compute_type
        self._num_threads = num_threads
        self._runnable: Runnable | None = None
        self._translators: dict[int, Translator] = {}

    def load(self, settings: Settings) -> None:
        """Read the weights and allocate a session."""
        from model.loading import load_for_decoding  # noqa: PLC0415  # see above

        self._runnable = load_for_decoding(
            self._directory,
            device="cpu",
            compute_type=self._compute_type,
            num_threads=self._num_threads,
        )
        self._translator(settings)

    def prepare(self, work: Work, settings: Settings) -> Job:
        """One request a sentence."""
        from model.request import DecodeRequest  # noqa: PLC0415  # see above

        translator = self._translator(settings)
        prefix = translator.pipeline.prefix_ids(translator.manifest.pairs[0])
        requests = [
            DecodeRequest(
                source_ids=source,
                prefix_ids=prefix,
                search=SearchConfig(
                    beam_size=work.beam_size, stopping=work.stopping, max_length=max_length
                ),
            )
            for source, max_length in zip(work.sources, work.max_lengths, strict=True)
        ]
        return _DragomanJob(translator=translator, requests=requests)

    def _translator(self, settings: Settings) -> "Translator":
        from model.offline.translator import Translator  # noqa: PLC0415  # see above

        assert self._runnable is not None
        max_rows = int(settings["max_rows"])
        if max_rows not in self._translators:
            # One session at a time, so that none sits in memory beside the one that runs.
            self._translators = {max_rows: Translator(self._runnable, max_rows=max_rows)}
        return self._translators[max_rows]


@dataclass(slots=True, kw_only=True)
class _DragomanJob:
    translator: "Translator"
    requests: "list[DecodeRequest]"
    found: "Sequence[tuple[Hypothesis, ...]]" = ()

    def run(self) -> None:
        self.found = self.translator.search(self.requests)

    def targets(self) -> list[list[int]]:
        return [list(hypotheses[0].token_ids) for hypotheses in self.found]


class CTranslate2:
    """`ctranslate2.Translator`: strings in, strings out, batches formed by itself."""

    def __init__(self, models: Path) -> None:
        import ctranslate2  # noqa: PLC0415  # the other engines' processes must not hold it

        self._open: Callable[..., ctranslate2.Translator] = ctranslate2.Translator
        self._models = models
        self._pieces = _pieces(models / "ctranslate2-int8")
        self._ids = {piece: index for index, piece in enumerate(self._pieces[1])}
        suppressed = read_manifest(models / "checkpoint", verify=False).tokens.suppressed_ids
        self._suppressed = [[self._pieces[1][index]] for index in suppressed]
        self._opened: tuple[object, ...] = ()
        self._processor: sentencepiece.SentencePieceProcessor | None = None
        self._translator: ctranslate2.Translator | None = None

    def load(self, settings: Settings) -> None:
        """Read the weights that are stored in the type they are computed in."""
        names = ("compute_type", "inter_threads", "intra_threads")
        wanted = tuple(settings[name] for name in names)
        if wanted == self._opened:
            return
        # Nobody translates text without it; Dragoman loads its own with the checkpoint.
        self._processor = sentencepiece.SentencePieceProcessor(
            model_file=str(self._models / "checkpoint" / "source.spm")
        )
        stored = "float32" if settings["compute_type"] == "float32" else "int8"
        self._translator = None
        self._translator = self._open(
            str(self._models / f"ctranslate2-{stored}"),
            device="cpu",
            compute_type=settings["compute_type"],
            inter_threads=settings["inter_threads"],
            intra_threads=settings["intra_threads"],
        )
        self._opened = wanted

    def prepare(self, work: Work, settings: Settings) -> Job:
        """Strings, in calls of one length each."""
        self.load(settings)
        assert self._translator is not None
        sources, _ = self._pieces
        return _CTranslate2Job(
            translator=self._translator,
            work=work,
            groups=work.groups(),
            pieces=[[sources[index] for index in source[:-1]] for source in work.sources],
            ids=self._ids,
            suppressed=self._suppressed,
            settings=settings,
        )


@dataclass(slots=True, kw_only=True)
class _CTranslate2Job:
    translator: "ctranslate2.Translator"
    work: Work
    groups: list[list[int]]
    pieces: list[list[str]]
    ids: Mapping[str, int]
    suppressed: list[list[str]]
    settings: Settings
    found: list[list[str]] = field(default_factory=list)

    def run(self) -> None:
        """All calls are posted before the first is waited for, so no worker runs dry."""
        posted = [self._post(group) for group in self.groups]
        self.found = [[]] * len(self.pieces)
        for group, results in zip(self.groups, posted, strict=True):
            for index, result in zip(group, results, strict=True):
                self.found[index] = result.result().hypotheses[0]

    def _post(self, group: list[int]) -> "list[ctranslate2.AsyncTranslationResult]":
        # Its cap does not count EOS, ours does.
        length = self.work.max_lengths[group[0]] - 1
        return cast(
            "list[ctranslate2.AsyncTranslationResult]",
            self.translator.translate_batch(
                [self.pieces[index] for index in group],
                max_batch_size=self.settings["max_batch_size"],
                batch_type=self.settings["batch_type"],
                asynchronous=True,
                beam_size=self.work.beam_size,
                length_penalty=1.0,
                max_decoding_length=length,
                min_decoding_length=length if self.work.is_forced else 0,
                suppress_sequences=self.suppressed,
            ),
        )

    def targets(self) -> list[list[int]]:
        return [[self.ids[piece] for piece in found] for found in self.found]


class HuggingFace:
    """`MarianMTModel.generate` in float32."""

    def __init__(self, models: Path, *, num_threads: int) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here is to be fetched
        import torch  # noqa: PLC0415  # the other engines' processes must not hold it
        import transformers  # noqa: PLC0415  # same

        transformers.utils.logging.disable_progress_bar()
        torch.set_num_threads(num_threads)
        self._directory = models / "huggingface"
        self._manifest = read_manifest(models / "checkpoint", verify=False)
        self._read: Callable[..., transformers.MarianMTModel] = (
            transformers.MarianMTModel.from_pretrained
        )
        self._defaults: Callable[[], transformers.GenerationConfig] = transformers.GenerationConfig
        self._network: transformers.MarianMTModel | None = None

    def load(self, settings: Settings) -> None:  # noqa: ARG002  # the interface
        """Read the weights."""
        self._network = self._read(self._directory).eval()
        # What is left out of a search is taken from here, so nothing may be left here.
        self._network.generation_config = self._defaults()

    def prepare(self, work: Work, settings: Settings) -> Job:  # noqa: ARG002  # the interface
        """Padded batches of sentences of one cap and similar lengths."""
        assert self._network is not None
        groups = [
            sorted(group, key=lambda index: len(work.sources[index])) for group in work.groups()
        ]
        batches = [
            group[start : start + _HUGGINGFACE_BATCH]
            for group in groups
            for start in range(0, len(group), _HUGGINGFACE_BATCH)
        ]
        return _HuggingFaceJob(
            network=self._network, manifest=self._manifest, work=work, batches=batches
        )


@dataclass(slots=True, kw_only=True)
class _HuggingFaceJob:
    network: "transformers.MarianMTModel"
    manifest: Manifest
    work: Work
    batches: list[list[int]]
    found: dict[int, list[int]] = field(default_factory=dict)

    def run(self) -> None:
        import torch  # noqa: PLC0415  # imported long before; a name for it here

        with torch.inference_mode():
            for batch in self.batches:
                self._generate(batch)

    def _generate(self, batch: list[int]) -> None:
        import torch  # noqa: PLC0415  # same

        tokens = self.manifest.tokens
        sources = [torch.tensor(self.work.sources[index]) for index in batch]
        padded = torch.nn.utils.rnn.pad_sequence(
            sources, batch_first=True, padding_value=tokens.pad_id
        )
        mask = torch.nn.utils.rnn.pad_sequence(
            [torch.ones_like(source) for source in sources], batch_first=True
        )
        output = self.network.generate(
            padded,
            attention_mask=mask,
            generation_config=_huggingface_search(
                self.manifest.tokens, self.work.beam_size, self.work.max_lengths[batch[0]]
            ),
        )
        for index, ids in zip(batch, output[:, 1:].tolist(), strict=True):
            ends = [place for place, token in enumerate(ids) if token == tokens.eos_id]
            self.found[index] = ids[: ends[0]] if ends else ids

    def targets(self) -> list[list[int]]:
        return [self.found[index] for index in range(len(self.work.sources))]


def _huggingface_search(
    tokens: SpecialTokens, beam_size: int, max_length: int
) -> "transformers.GenerationConfig":
    """The same search in its words; like CTranslate2's, its cap counts no EOS here."""
    from transformers import GenerationConfig  # noqa: PLC0415  # imported long before

    beams = {"early_stopping": True, "length_penalty": 1.0} if beam_size > 1 else {}
    return GenerationConfig(
        num_beams=beam_size,
        do_sample=False,
        max_new_tokens=max_length - 1,
        suppress_tokens=list(tokens.suppressed_ids),
        pad_token_id=tokens.pad_id,
        eos_token_id=tokens.eos_id,
        decoder_start_token_id=tokens.start_id,
        bos_token_id=None,
        **beams,
    )


def _pieces(directory: Path) -> tuple[list[str], list[str]]:
    """Source and target vocabulary of a CTranslate2 model."""
    shared = directory / "shared_vocabulary.json"
    names = ("source", "target")
    paths = (
        [shared, shared]
        if shared.exists()
        else [directory / f"{name}_vocabulary.json" for name in names]
    )
    source, target = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    return source, target
