"""What Marian itself wrote of the networks in tests/fixtures/marian, and its search, plainly."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from model.checkpoint.manifest import Manifest
from model.checkpoint.tensors.safetensors_file import QuantisedRows
from model.exchange.imports.imported import ImportedModel
from model.nn.transformer import Transformer
from model.text.subwords.tokenizer import Tokenizer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "marian"


@dataclass(frozen=True)
class MarianHypothesis:
    """One line of an n-best list: pieces, log probability of each and of EOS, score."""

    pieces: tuple[str, ...]
    word_scores: tuple[float, ...]
    score: float


def expected(folder: str, arithmetic: str = "float32") -> list[tuple[str, list[MarianHypothesis]]]:
    """Every source with Marian's n-best list."""
    value = json.loads((FIXTURES / folder / "expected.json").read_text(encoding="utf-8"))
    lists = [
        [
            MarianHypothesis(tuple(line["pieces"]), tuple(line["word_scores"]), line["score"])
            for line in hypotheses
        ]
        for hypotheses in value[arithmetic]
    ]
    return list(zip(value["sources"], lists, strict=True))


def network_of(imported: ImportedModel, *, dtype: torch.dtype = torch.float64) -> Transformer:
    """The network with all tensors of an import, which must be those of its shape."""
    state = {}
    for name, tensor in imported.tensors.items():
        value = tensor.read()
        if isinstance(value, QuantisedRows):
            value = value.quanta * value.scale[:, None]
        assert tuple(value.shape) == tensor.shape, name
        state[name] = value.to(dtype)
    transformer = Transformer(imported.network).to(dtype)
    transformer.load_state_dict(state)
    return transformer.eval()


def tokenizer_of(imported: ImportedModel) -> Tokenizer:
    """The tokenizer that the checkpoint will have."""
    manifest = Manifest(
        name=imported.name,
        description=imported.description,
        licence="test",
        network=imported.network,
        tokens=imported.tokens,
        pairs=imported.pairs,
        limits=imported.limits,
        licences=(),
        tensors={},
        files=None,  # type: ignore[arg-type]
        moses=imported.tokenizer.moses,
        normalisation=imported.tokenizer.normalisation,
    )
    return imported.tokenizer.build(manifest)


@torch.inference_mode()
def word_scores(
    transformer: Transformer, start: int, source: list[int], target: list[int]
) -> list[float]:
    """Log probability of every target id, EOS among them."""
    ids = torch.tensor([[start, *target[:-1]]])
    logits = transformer(torch.tensor([source]), ids)[0]
    scores: list[float] = logits.log_softmax(-1)[range(len(target)), target].tolist()
    return scores


@torch.inference_mode()
def marian_search(
    transformer: Transformer,
    imported: ImportedModel | Manifest,
    source: list[int],
    *,
    beam_size: int,
    length_factor: float = 3.0,
) -> list[tuple[list[int], float]]:
    """Marian's beam search: the beam narrows by every hypothesis that ends.

    Returns:
        Ids without EOS and scores per token with EOS, the best first, as in its n-best lists.
    """
    tokens = imported.tokens
    running: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[list[int], float]] = []
    cap = int(length_factor * len(source))
    width = beam_size
    for length in range(1, cap + 1):
        fed = torch.tensor([[tokens.start_id, *generated] for _, generated in running])
        logits = transformer(torch.tensor([source] * len(running)), fed)[:, -1]
        scores = logits.log_softmax(-1)
        scores[:, list(tokens.suppressed_ids)] = float("-inf")
        totals = scores + torch.tensor([[total] for total, _ in running], dtype=scores.dtype)
        best = totals.flatten().topk(width)
        kept = [
            (total, [*running[place // totals.shape[1]][1], place % totals.shape[1]])
            for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        running = []
        for total, generated in kept:
            if generated[-1] == tokens.eos_id:
                finished.append((generated[:-1], total / length))
            elif length == cap:
                finished.append((generated, total / length))
            else:
                running.append((total, generated))
        width = len(running)
        if not running:
            break
    finished.sort(key=lambda hypothesis: -hypothesis[1])
    return finished
