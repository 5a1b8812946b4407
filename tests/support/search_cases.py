"""Small networks with peaked distributions, random searches over them, and crowds of them."""

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from msgspec import structs

from model.config import ModelConfig, Sampling, SearchConfig, SpecialTokens, StoppingRule
from model.decode.backends.base import Backend
from model.decode.backends.opening import Network, open_backend
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis, SessionLimits
from model.nn.transformer import Transformer
from support.reference_groups import reference_groups
from support.reference_search import (
    NextLogProbs,
    ReferenceHypothesis,
    reference_sample,
    reference_search,
)

TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0,))
CROWD = int(os.environ.get("CROWD", "16"))
"""Sentences that a comparison with the plain search is made of; `make test-search` takes more."""
LIMITS = SessionLimits(max_rows=24, max_slots=6, max_source_length=16, max_target_length=24)
_FIRST_WORD = 3
FAMILIES: dict[str, dict[str, object]] = {
    "t5": {
        "norm": "rmsnorm",
        "norm_placement": "pre",
        "norm_epsilon": 1e-6,
        "position": "relative",
        "activation": "gelu-tanh",
        "gated_feed_forward": True,
        "feed_forward_bias": False,
        "attention_bias": False,
        "scale_attention": False,
        "scale_output": True,
        "scale_embedding": False,
        "d_k": 6,
        "d_v": 6,
    },
    "mbart": {
        "norm_placement": "pre",
        "position": "learned",
        "position_offset": 2,
        "max_positions": 64,
        "embedding_norm": True,
        "activation": "gelu",
    },
    "fsmt": {
        "position": "sinusoidal-m2m100",
        "position_offset": 2,
        "decoder_d_ff": 20,
        "target_vocab_size": 23,
        "share_embeddings": False,
        "tie_output": False,
    },
    "student": {
        "position": "sinusoidal-m2m100",
        "decoder_cell": "ssru",
        "norm_epsilon": 1e-6,
    },
}
"""Networks of other families: what their fields are, and no more."""

families = pytest.mark.parametrize("shape", FAMILIES.values(), ids=FAMILIES.keys())


def small_transformer(
    *, dtype: torch.dtype = torch.float64, eos_bias: float = 1.0, seed: int = 0, **shape: object
) -> Transformer:
    """A random network that is sure enough of itself for searches to differ."""
    torch.manual_seed(seed)
    settings: dict[str, object] = {
        "vocab_size": 23,
        "d_model": 16,
        "num_heads": 2,
        "d_ff": 32,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "dropout": 0.0,
    }
    transformer = Transformer(ModelConfig(**(settings | shape))).to(dtype).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in transformer.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)
        assert transformer.output_bias is not None
        transformer.output_bias.normal_()
        transformer.output_bias[TOKENS.eos_id] = eos_bias
    return transformer


def random_search(rng: random.Random, *, max_beam: int = 5, max_length: int = 16) -> SearchConfig:
    beam_size = rng.randint(1, max_beam)
    rules: list[StoppingRule] = ["exact", "first", "heuristic", "bound"]
    return SearchConfig(
        beam_size=beam_size,
        num_hypotheses=rng.randint(1, beam_size),
        length_penalty=rng.choice([1.0, 0.0, -0.5, 2.0, 0.6]),
        num_candidates=rng.choice([None, 2 * beam_size + 1]),
        stopping=rng.choice(rules),
        max_length=rng.randint(1, max_length),
        with_alignment=rng.random() < 0.3,
    )


def random_request(
    rng: random.Random, search: SearchConfig | None = None, *, vocab_size: int = 23
) -> DecodeRequest:
    def words(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(_FIRST_WORD, vocab_size) for _ in range(count))

    return DecodeRequest(
        source_ids=(*words(rng.randint(1, 12)), TOKENS.eos_id),
        prefix_ids=(TOKENS.start_id, *words(rng.choice([0, 0, 2]))),
        search=search or random_search(rng),
    )


def with_suppressed(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """Every other time the same, else with some words, and now and then EOS, suppressed."""
    if rng.random() < 0.5:
        return request
    tokens = rng.sample(range(TOKENS.eos_id, 23), rng.randint(1, 8))
    return structs.replace(request, suppressed_ids=tuple(tokens))


def with_forced(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """Every other time the same, else with a beginning that is forced."""
    if rng.random() < 0.5:
        return request
    tokens = [rng.randrange(_FIRST_WORD, 23) for _ in range(rng.randint(1, 5))]
    return structs.replace(request, forced_ids=tuple(tokens))


def with_phrases(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """One in three the same, else with phrases, now and then behind a forced beginning."""
    if rng.random() < 0.33:
        return request

    def path() -> tuple[int, ...]:
        return tuple(rng.randrange(_FIRST_WORD, 12) for _ in range(rng.randint(1, 3)))

    phrases = tuple(
        tuple(path() for _ in range(rng.choice([1, 1, 2]))) for _ in range(rng.randint(1, 3))
    )
    return with_forced(rng, structs.replace(request, phrases=phrases))


def with_sampling(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """One in three the same, else drawn; now and then with a forced beginning too."""
    if rng.random() < 0.33:
        return request
    sampling = Sampling(
        temperature=rng.choice([0.5, 1.0, 1.7]),
        top_k=rng.choice([1, 3, 10, 128]),
        top_p=rng.choice([1.0, 0.9, 0.4]),
        seed=rng.getrandbits(63),
    )
    drawn = structs.replace(request, search=replace(request.search, sampling=sampling))
    return with_forced(rng, drawn)


def with_groups(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """One in three the same, else by groups of beams; now and then behind a forced beginning."""
    if rng.random() < 0.33:
        return request
    num_groups, group_size = rng.choice([(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (5, 1)])
    beam_size = num_groups * group_size
    search = replace(
        request.search,
        beam_size=beam_size,
        num_hypotheses=rng.randint(1, beam_size),
        num_candidates=rng.choice([None, 2 * beam_size + 3]),
        num_groups=num_groups,
        diversity_penalty=rng.choice([0.3, 1.0, 4.0]),
    )
    return with_forced(rng, structs.replace(request, search=search))


def without_repeats(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """Searched in one of all ways; three in four may not say n tokens twice."""
    vary = rng.choice([with_forced, with_phrases, with_sampling, with_groups])
    return unrepeating(rng, vary(rng, request))


def unrepeating(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
    """One in four the same, else a search that says no one, two or three tokens twice."""
    size = rng.choice([0, 1, 2, 3])
    return structs.replace(request, search=replace(request.search, no_repeat_ngram=size))


def fits(session: DecodingSession, requests: list[DecodeRequest]) -> bool:
    rows = sum(request.search.beam_size for request in requests)
    return rows <= session.free_rows and len(requests) <= session.free_slots


def run_in_a_crowd(
    network: Network,
    rng: random.Random,
    num_sentences: int,
    *,
    tokens: SpecialTokens = TOKENS,
    opener: Callable[..., Backend] = open_backend,
    has_suppressed: bool = False,
    vary: Callable[[random.Random, DecodeRequest], DecodeRequest] | None = None,
) -> list[tuple[DecodeRequest, tuple[Hypothesis, ...]]]:
    """Sentences that join and leave at random steps, some of them released half-way."""
    session = DecodingSession(network, tokens=tokens, limits=LIMITS, opener=opener)

    def asked() -> DecodeRequest:
        request = random_request(rng)
        if vary is not None:
            request = vary(rng, request)
        return with_suppressed(rng, request) if has_suppressed else request

    running: dict[int, DecodeRequest] = {}
    done = []
    while len(done) < num_sentences:
        batch: list[DecodeRequest] = []
        while rng.random() < 0.6 and fits(session, [*batch, request := asked()]):
            batch.append(request)
        running |= dict(zip(session.admit(batch), batch, strict=True))
        if running and rng.random() < 0.05:
            slot_id = rng.choice(list(running))
            session.release(slot_id)
            del running[slot_id]
        done.extend((running.pop(f.slot_id), f.hypotheses) for f in session.step())
        session.check_integrity()
        assert session.num_slots == len(running)
    return done


def expected_of(
    network: Transformer | NextLogProbs, request: DecodeRequest, tokens: SpecialTokens
) -> list[ReferenceHypothesis]:
    """What the plain search finds, or draws, for a request."""
    source, prefix = list(request.source_ids), list(request.prefix_ids)
    suppressed_ids, forced_ids = request.suppressed_ids, request.forced_ids
    if request.search.sampling is not None:
        return reference_sample(
            network,
            tokens,
            source,
            prefix,
            request.search,
            suppressed_ids=suppressed_ids,
            forced_ids=forced_ids,
        )
    if request.search.num_groups > 1:
        return reference_groups(
            network,
            tokens,
            source,
            prefix,
            request.search,
            suppressed_ids=suppressed_ids,
            forced_ids=forced_ids,
        )
    return reference_search(
        network,
        tokens,
        source,
        prefix,
        request.search,
        suppressed_ids=suppressed_ids,
        forced_ids=forced_ids,
        phrases=request.phrases,
    )


def assert_equals_reference(
    transformer: Transformer, request: DecodeRequest, hypotheses: tuple[Hypothesis, ...]
) -> None:
    """The same hypotheses and numbers as the plain search."""
    expected = expected_of(transformer, request, TOKENS)
    assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
    for hypothesis, reference in zip(hypotheses, expected, strict=True):
        assert hypothesis.score == pytest.approx(reference.score, abs=1e-10)
        assert hypothesis.token_log_probs == pytest.approx(reference.log_probs, abs=1e-10)
        assert hypothesis.is_truncated == reference.is_truncated
        assert hypothesis.num_missed == reference.num_missed
