"""A converted network exported again, as the target's own engine runs it.

Owns the comparison; a network that an export refuses has no line here.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM

from benchmarks.parity.figures import Distance, Figures
from benchmarks.parity.references import Engine
from benchmarks.parity.subject import Sample, Subject
from model.errors import UnsupportedVariantError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.export.huggingface.exporter import export_huggingface


def compare_exports(
    subject: Subject, samples: Sequence[Sample], figures: Figures, folder: Path
) -> None:
    """Differences of logits from transformers, of log-probabilities from CTranslate2.

    Args:
        subject: What is exported.
        samples: What both are asked.
        figures: Filled; with CTranslate2's own int8 too, if the reference has shown none.
        folder: Where exports go.
    """
    for name, export, compare in (
        ("transformers", export_huggingface, _compare_transformers),
        ("CTranslate2", export_ctranslate2, _compare_ctranslate2),
    ):
        try:
            export(subject.checkpoint, folder / name)
        except UnsupportedVariantError:
            continue
        figures.exported[name] = Distance()
        compare(subject, samples, figures, folder / name)


@torch.inference_mode()
def _compare_transformers(
    subject: Subject, samples: Sequence[Sample], figures: Figures, folder: Path
) -> None:
    twin = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    for sample in samples:
        output = twin(
            input_ids=sample.source,
            attention_mask=sample.is_real.long(),
            decoder_input_ids=sample.fed,
            use_cache=False,
        )
        figures.exported["transformers"].add(subject.network(sample)[1], output.logits)


def _compare_ctranslate2(
    subject: Subject, samples: Sequence[Sample], figures: Figures, folder: Path
) -> None:
    engine, int8 = (_engine(subject, folder, compute_type=kind) for kind in ("float32", "int8"))
    distance = Distance()
    for sample in samples:
        theirs = engine.log_probs(sample)
        figures.exported["CTranslate2"].add_lists(subject.log_probs(sample), theirs)
        distance.add_lists(int8.log_probs(sample), theirs)
    figures.reference_int8 = figures.reference_int8 or distance


def _engine(subject: Subject, folder: Path, *, compute_type: str) -> Engine:
    tokens = subject.checkpoint.manifest.tokens
    return Engine(
        folder,
        source=_pieces(folder, "source"),
        target=_pieces(folder, "target"),
        tokens=tokens,
        compute_type=compute_type,
        adds_source_eos=tokens.has_source_eos,
    )


def _pieces(folder: Path, side: str) -> dict[int, str]:
    shared = folder / "shared_vocabulary.json"
    path = shared if shared.exists() else folder / f"{side}_vocabulary.json"
    return dict(enumerate(json.loads(path.read_text(encoding="utf-8"))))
