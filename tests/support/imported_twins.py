"""An imported network against transformers on the same folder, and the tokenizers side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.text.languages.tags import LanguagePair
from support.huggingface import Comparison, generate

TOLERANCE = 2e-5
MAX_LENGTH = 12


@dataclass(frozen=True)
class Twins:
    """A folder's network as a checkpoint in float32, and as transformers runs it."""

    folder: Path
    checkpoint: Checkpoint
    theirs: PreTrainedModel

    def pair(self, source: str, target: str) -> LanguagePair:
        pair = self.checkpoint.manifest.pair(source, target)
        assert pair is not None
        return pair

    def requests(self, lines: Sequence[str], pair: LanguagePair) -> list[DecodeRequest]:
        tokenizer = self.checkpoint.tokenizer
        search = SearchConfig(
            beam_size=4, num_hypotheses=4, stopping="first", max_length=MAX_LENGTH
        )
        return [
            DecodeRequest(
                source_ids=tuple(tokenizer.encode(line, pair)),
                prefix_ids=tuple(tokenizer.target_prefix(pair)),
                search=search,
            )
            for line in lines
        ]


def imported_twins(
    folder: Path, destination: Path, *, pairs: tuple[tuple[str, str], ...] = ()
) -> Twins:
    """Both, of one folder."""
    convert(
        folder,
        destination,
        importers=IMPORTERS,
        compute="float32",
        options=ImportOptions(pairs=pairs),
    )
    theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    return Twins(folder=folder, checkpoint=load_checkpoint(destination), theirs=theirs)


@torch.inference_mode()
def compare_network(twins: Twins, lines: Sequence[str], pair: LanguagePair) -> None:
    """Encoder output and logits of teacher forcing, of a padded batch."""
    requests, transformer = twins.requests(lines, pair), twins.checkpoint.transformer
    pad = twins.checkpoint.manifest.tokens.pad_id
    source = _padded([request.source_ids for request in requests], pad)
    generator = torch.Generator().manual_seed(1)
    more = torch.randint(
        4, transformer.config.output_size - 9, (len(lines), 9), generator=generator
    )
    target = torch.cat((torch.tensor([request.prefix_ids for request in requests]), more), dim=1)
    mask = _mask([request.source_ids for request in requests])
    output = twins.theirs(
        input_ids=source, attention_mask=mask.long(), decoder_input_ids=target, use_cache=False
    )
    memory = transformer.encode(source, mask)
    theirs = output.encoder_last_hidden_state
    assert (memory - theirs)[mask].abs().max() < TOLERANCE * max(1.0, float(theirs.abs().max()))
    logits = transformer.decode(target, memory, mask)
    scale = max(1.0, float(output.logits.abs().max()))
    assert (logits - output.logits).abs().max() < TOLERANCE * scale


def compare_hypotheses(twins: Twins, lines: Sequence[str], pair: LanguagePair) -> Comparison:
    """Beams of four through a session, against `generate`."""
    requests, manifest = twins.requests(lines, pair), twins.checkpoint.manifest
    limits = SessionLimits(
        max_rows=4 * len(lines),
        max_slots=len(lines),
        max_source_length=max(len(request.source_ids) for request in requests),
        max_target_length=MAX_LENGTH + 2,
    )
    session = DecodingSession(twins.checkpoint.transformer, tokens=manifest.tokens, limits=limits)
    slots, done = session.admit(requests), {}
    while not session.is_idle:
        done |= {finished.slot_id: finished.hypotheses for finished in session.step()}
    comparison = Comparison()
    theirs = generate(twins.theirs, manifest.tokens, requests)
    for number, (slot, other) in enumerate(zip(slots, theirs, strict=True)):
        comparison.add(str(number), done[slot], other)
    return comparison


def _padded(rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])


def _mask(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[index < len(row) for index in range(width)] for row in rows])
