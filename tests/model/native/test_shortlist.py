"""Sentences that choose from lists of their own, by the kernels and by the plain search."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from model.config import SearchConfig
from model.decode.backends.opening import open_backend
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.native import kernels
from model.native.network import Int8Network
from model.shortlist import Shortlist
from support.int8_cases import SHAPES, random_network
from support.plain_kernels import plain_network
from support.search_cases import (
    LIMITS,
    TOKENS,
    random_request,
    run_in_a_crowd,
    unrepeating,
    with_phrases,
)
from support.shortlists import check_searches, random_shortlist, shortlist_of

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
_MANY = "many pieces, wide heads"
_CASES = {
    _MANY: random_shortlist(700, 700, num_best=60),
    "ssru": random_shortlist(23, 23, num_best=4, with_source=True),
    "rmsnorm, silu, nothing shared": random_shortlist(23, 29, num_best=5),
    "odd widths, no biases": random_shortlist(23, 23, num_best=3),
}
cases = pytest.mark.parametrize(("name", "shortlist"), _CASES.items(), ids=_CASES.keys())


def alone(
    network: Int8Network, request: DecodeRequest, shortlist: Shortlist | None
) -> tuple[Hypothesis, ...]:
    session = DecodingSession(network, tokens=TOKENS, limits=LIMITS, shortlist=shortlist)
    session.admit([request])
    while True:
        for finished in session.step():
            return finished.hypotheses


@cases
def test_a_crowd_never_changes_a_sentence_not_by_one_bit(name: str, shortlist: Shortlist) -> None:
    network, _ = random_network(SHAPES[name], num_threads=2)
    opener = partial(open_backend, shortlist=shortlist)
    crowd = run_in_a_crowd(network, random.Random(3), 40, opener=opener, has_suppressed=True)
    for request, hypotheses in crowd:
        assert hypotheses == alone(network, request, shortlist)


@pytest.mark.parametrize("forced_first_id", [None, 7])
@cases
def test_the_search_is_the_plain_search_over_the_list_alone(
    name: str, shortlist: Shortlist, forced_first_id: int | None
) -> None:
    network, _ = random_network(SHAPES[name], num_threads=2)
    num_sentences = 4 if name == _MANY else 25  # the oracle ranks all tokens in Python
    tokens = replace(TOKENS, forced_first_id=forced_first_id)
    next_log_probs = plain_network(replace_suppressed(network, name))
    opener = partial(open_backend, shortlist=shortlist)
    crowd = run_in_a_crowd(
        network, random.Random(13), num_sentences, tokens=tokens, has_suppressed=True, opener=opener
    )
    check_searches(crowd, next_log_probs, shortlist, tokens, tolerance=1e-5)


def test_what_a_search_has_to_contain_is_in_its_list() -> None:
    network, _ = random_network(SHAPES["ssru"], num_threads=2)
    shortlist = _CASES["ssru"]
    opener = partial(open_backend, shortlist=shortlist)
    crowd = run_in_a_crowd(network, random.Random(17), 14, opener=opener, vary=with_phrases)
    next_log_probs = plain_network(replace_suppressed(network, "ssru"))
    check_searches(crowd, next_log_probs, shortlist, TOKENS, tolerance=1e-5)
    assert any(request.phrases for request, _ in crowd)


def test_who_may_not_repeat_themselves_do_not_with_a_list_either() -> None:
    def vary(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
        return unrepeating(rng, with_phrases(rng, request))

    network, _ = random_network(SHAPES["ssru"], num_threads=2)
    shortlist = _CASES["ssru"]
    opener = partial(open_backend, shortlist=shortlist)
    crowd = run_in_a_crowd(network, random.Random(67), 24, opener=opener, vary=vary)
    next_log_probs = plain_network(replace_suppressed(network, "ssru"))
    check_searches(crowd, next_log_probs, shortlist, TOKENS, tolerance=1e-5)
    assert sum(request.search.no_repeat_ngram > 0 for request, _ in crowd) > 8


def replace_suppressed(network: Int8Network, name: str) -> Int8Network:
    """The same network with nothing suppressed: what is suppressed keeps its probability."""
    free, _ = random_network(SHAPES[name], suppressed_ids=())
    return replace(free, team=network.team)


@pytest.mark.parametrize("name", [_MANY, "rmsnorm, silu, nothing shared"])
def test_a_list_of_all_tokens_is_the_plain_search_to_the_bit(name: str) -> None:
    network, _ = random_network(SHAPES[name])
    everything = shortlist_of(
        [[]] * network.config.vocab_size, always=range(network.config.output_size)
    )
    rng = random.Random(23)
    for request in [random_request(rng) for _ in range(20)]:
        assert alone(network, request, everything) == alone(network, request, None)


def test_the_number_of_threads_never_changes_a_bit() -> None:
    rng = random.Random(5)
    requests = [random_request(rng) for _ in range(15)]
    networks = [random_network(SHAPES[_MANY], num_threads=count)[0] for count in (1, 2, 3)]
    one, two, three = [
        [alone(network, request, _CASES[_MANY]) for request in requests] for network in networks
    ]
    assert one == two == three


def test_nothing_is_chosen_that_is_not_listed() -> None:
    network, _ = random_network(SHAPES[_MANY])
    shortlist = shortlist_of([[9, 300, 650, 699]] * 700, always=[0, 2, 5])
    request = DecodeRequest(
        source_ids=(3, 1),
        prefix_ids=(0,),
        search=SearchConfig(beam_size=6, num_hypotheses=6, max_length=12),
    )
    found, free = (
        {token for h in alone(network, request, table) for token in h.token_ids}
        for table in (shortlist, None)
    )
    assert found
    assert found <= {2, 5, 9, 300, 650, 699}
    assert free - {2, 5, 9, 300, 650, 699}


def test_a_table_that_is_not_the_networks_is_refused() -> None:
    network, _ = random_network({})
    other, _ = random_network({})
    module = kernels.load()

    def made(always: list[int], offsets: list[int], ids: list[int]) -> object:
        return module.shortlist(
            network.packed,
            always=np.array(always, dtype=np.int32),
            offsets=np.array(offsets, dtype=np.int32),
            ids=np.array(ids, dtype=np.int32),
            with_source=True,
        )

    rising = [0] * 23 + [2]
    sound = made([1], rising, [0, 22])
    for parts in (
        ([23], rising, [0, 22]),
        ([1], rising, [0, -1]),
        ([1], rising[1:], [0, 22]),
        ([1], rising, [0]),
        ([1], [0, 2, 1, *rising[3:]], [0, 22]),
    ):
        with pytest.raises(ValueError, match=r"offsets must rise|out of range"):
            made(*parts)
    with pytest.raises(ValueError, match="must be of the network"):
        module.session(
            other.packed, other.team, max_rows=1, max_slots=1, max_source_length=4,
            max_target_length=4, eos_id=1, shortlist=sound,
        )  # fmt: skip
