"""Hugging Face `generate` on our weights, and the comparison of its hypotheses with ours."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, PreTrainedModel
from transformers.generation.utils import GenerateOutput

from model.config import SearchConfig, SpecialTokens, StoppingRule
from model.decode.session import DecodeRequest, Hypothesis
from model.exchange.export.huggingface.marian import marian_config, marian_tensors
from model.nn.transformer import Transformer

EARLY_STOPPING: dict[StoppingRule, bool | Literal["never"]] = {
    "first": True,
    "heuristic": False,
    "bound": "never",
}
TIE = 1e-4


def marian_twin(transformer: Transformer, tokens: SpecialTokens) -> MarianMTModel:
    """A MarianMTModel with the weights of a Marian-expressible network of ours."""
    settings = marian_config(transformer.config, tokens, max_positions=512)
    twin = MarianMTModel(MarianConfig(**settings))
    missing, unexpected = twin.load_state_dict(dict(marian_tensors(transformer)), strict=False)
    assert unexpected == []
    assert all("embed_positions" in name or name in twin.all_tied_weights_keys for name in missing)
    return twin.eval()


@dataclass(frozen=True)
class Generated:
    token_ids: tuple[int, ...]
    score: float


def generation_config(
    search: SearchConfig, tokens: SpecialTokens, **more: object
) -> GenerationConfig:
    """The settings of `generate` that are a search of ours, and `more` of its own."""
    return GenerationConfig(
        num_beams=search.beam_size,
        num_return_sequences=search.num_hypotheses,
        max_new_tokens=search.max_length,
        forced_eos_token_id=tokens.eos_id,
        suppress_tokens=list(tokens.suppressed_ids),
        pad_token_id=tokens.pad_id,
        eos_token_id=tokens.eos_id,
        decoder_start_token_id=tokens.start_id,
        bos_token_id=None,
        return_dict_in_generate=True,
        output_scores=True,
        **_beam_settings(search),
        **more,
    )


def _beam_settings(search: SearchConfig) -> dict[str, object]:
    """What `generate` would warn of with one beam."""
    if search.beam_size == 1:
        return {}
    return {
        "length_penalty": search.length_penalty,
        "early_stopping": EARLY_STOPPING[search.stopping],
    }


def bodies(output: GenerateOutput, tokens: SpecialTokens, *, start: int) -> list[tuple[int, ...]]:
    """Generated ids up to EOS, without start token and prefix."""
    sequences = output.sequences.tolist()
    return [tuple(ids[start : ids.index(tokens.eos_id, start)]) for ids in sequences]


def generate(
    twin: PreTrainedModel, tokens: SpecialTokens, requests: Sequence[DecodeRequest]
) -> list[list[Generated]]:
    """What `generate` gives for requests that all have the same search, of several beams."""
    output = _generate(twin, tokens, requests)
    scores = output.sequences_scores.tolist()
    found = bodies(output, tokens, start=len(requests[0].prefix_ids))
    flat = [Generated(ids, score) for ids, score in zip(found, scores, strict=True)]
    n = requests[0].search.num_hypotheses
    return [flat[start : start + n] for start in range(0, len(flat), n)]


def generate_greedily(
    twin: PreTrainedModel, tokens: SpecialTokens, requests: Sequence[DecodeRequest]
) -> list[tuple[int, ...]]:
    """The same for one beam, where `generate` gives no scores."""
    start = len(requests[0].prefix_ids)
    return bodies(_generate(twin, tokens, requests), tokens, start=start)


@torch.inference_mode()
def _generate(
    twin: PreTrainedModel, tokens: SpecialTokens, requests: Sequence[DecodeRequest]
) -> GenerateOutput:
    width = max(len(request.source_ids) for request in requests)
    rows = [
        [*request.source_ids, *[tokens.pad_id] * (width - len(request.source_ids))]
        for request in requests
    ]
    mask = [[1] * len(r.source_ids) + [0] * (width - len(r.source_ids)) for r in requests]
    output: GenerateOutput = twin.generate(
        torch.tensor(rows),
        attention_mask=torch.tensor(mask),
        decoder_input_ids=torch.tensor([request.prefix_ids for request in requests]),
        generation_config=generation_config(requests[0].search, tokens),
    )
    return output


@dataclass
class Comparison:
    num_sentences: int = 0
    num_hypotheses: int = 0
    ties: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def add(self, name: str, ours: Sequence[Hypothesis], theirs: Sequence[Generated]) -> None:
        """Compare rank by rank; a different hypothesis with the same score is a tie."""
        self.num_sentences += 1
        self.num_hypotheses += len(theirs)
        if len(ours) != len(theirs):
            self.differences.append(f"{name}: {len(ours)} hypotheses, {len(theirs)} expected")
            return
        for rank, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            gap = abs(mine.score - other.score)
            line = f"{name}, hypothesis {rank}: {mine.score:.6f} and {other.score:.6f}"
            if gap > TIE:
                self.differences.append(line)
            elif mine.token_ids != other.token_ids:
                self.ties.append(line)
