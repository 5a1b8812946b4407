"""Hugging Face `generate` on our weights, and the comparison of its hypotheses with ours."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from model.checkpoint.manifest import SpecialTokens
from model.config import Activation, StoppingRule
from model.decode.session import DecodeRequest, Hypothesis
from model.nn.transformer import Transformer
from support.marian_weights import marian_state

EARLY_STOPPING: dict[StoppingRule, bool | Literal["never"]] = {
    "first": True,
    "heuristic": False,
    "bound": "never",
}
TIE = 1e-4
_ACTIVATIONS: dict[Activation, str] = {"relu": "relu", "gelu": "gelu", "silu": "swish"}


def marian_twin(transformer: Transformer, tokens: SpecialTokens) -> MarianMTModel:
    """A MarianMTModel with the weights of a Marian-expressible network of ours."""
    config = transformer.config
    assert config.norm_placement == "post"
    assert config.position == "sinusoidal-marian"
    twin = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            max_position_embeddings=512,
            activation_function=_ACTIVATIONS[config.activation],
            scale_embedding=config.scale_embedding,
            static_position_embeddings=True,
            pad_token_id=tokens.pad_id,
            eos_token_id=tokens.eos_id,
            bos_token_id=None,
            decoder_start_token_id=tokens.start_id,
        )
    )
    state = transformer.state_dict()
    for name, weight in marian_state(twin):
        weight.copy_(state[name])
    return twin.eval()


@dataclass(frozen=True)
class Generated:
    token_ids: tuple[int, ...]
    score: float


@torch.inference_mode()
def generate(
    twin: MarianMTModel, tokens: SpecialTokens, requests: Sequence[DecodeRequest]
) -> list[list[Generated]]:
    """What `generate` gives for requests that all have the same search."""
    search = requests[0].search
    width = max(len(request.source_ids) for request in requests)
    rows = [
        [*request.source_ids, *[tokens.pad_id] * (width - len(request.source_ids))]
        for request in requests
    ]
    mask = [[1] * len(r.source_ids) + [0] * (width - len(r.source_ids)) for r in requests]
    output = twin.generate(
        torch.tensor(rows),
        attention_mask=torch.tensor(mask),
        generation_config=GenerationConfig(
            num_beams=search.beam_size,
            num_return_sequences=search.num_hypotheses,
            length_penalty=search.length_penalty,
            early_stopping=EARLY_STOPPING[search.stopping],
            max_new_tokens=search.max_length,
            forced_eos_token_id=tokens.eos_id,
            suppress_tokens=list(tokens.suppressed_ids),
            pad_token_id=tokens.pad_id,
            eos_token_id=tokens.eos_id,
            decoder_start_token_id=tokens.start_id,
            bos_token_id=None,
            return_dict_in_generate=True,
            output_scores=True,
        ),
    )
    flat = []
    for ids, score in zip(output.sequences.tolist(), output.sequences_scores.tolist(), strict=True):
        body = ids[1:]
        flat.append(Generated(tuple(body[: body.index(tokens.eos_id)]), score))
    n = search.num_hypotheses
    return [flat[start : start + n] for start in range(0, len(flat), n)]


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
