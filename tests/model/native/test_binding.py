"""The binding: what does not fit, or lacks something, is refused before a kernel runs."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from model.native import kernels
from model.native.in_memory import pack_transformer
from model.native.network import Int8Network
from support.search_cases import TOKENS, small_transformer

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
SEARCH: dict[str, object] = {
    "candidates": 2,
    "num_hypotheses": 1,
    "max_length": 7,
    "length_penalty": 1.0,
    "stopping": "exact",
    "with_alignment": False,
    "sampling": None,
    "num_groups": 1,
    "diversity_penalty": 0.0,
    "no_repeat_ngram": 0,
}
REQUEST: dict[str, object] = {
    "source_ids": (3, 1),
    "prefix_ids": (0,),
    "suppressed_ids": (),
    "forced_ids": (),
    "phrases": (),
}


def packed() -> Int8Network:
    return pack_transformer(
        small_transformer(dtype=torch.float32),
        max_positions=38,
        suppressed_ids=TOKENS.suppressed_ids,
        num_threads=1,
    )


def admission(
    *, slot: int = 0, rows: Sequence[int] = (0,), without: str = "", **changes: object
) -> dict[str, list[object]]:
    """One sentence as the kernels read it, by names; some of it wrong, or missing."""
    request, search = (
        {name: changes.get(name, value) for name, value in part.items() if name != without}
        for part in (REQUEST, SEARCH)
    )
    asked = SimpleNamespace(**request, search=SimpleNamespace(**search))
    return {"names": [0], "slots": [slot], "rows": [rows], "requests": [asked]}


def drawn(**changes: object) -> SimpleNamespace:
    """How tokens are drawn, some of it wrong."""
    return SimpleNamespace(**{"temperature": 1.0, "top_k": 2, "top_p": 1.0, "seed": 0} | changes)


def test_what_does_not_fit_is_refused_by_the_binding() -> None:
    network = packed()
    make = kernels.load().session
    limits = {"max_rows": 2, "max_slots": 2, "max_source_length": 8, "max_target_length": 8}
    limits["eos_id"] = TOKENS.eos_id
    with pytest.raises(ValueError, match="shorter than the session's limits"):
        make(network.packed, network.team, **(limits | {"max_target_length": 39}))
    session = make(network.packed, network.team, **limits)

    def encode(ids: list[int], lengths: list[int], slots: list[int]) -> None:
        session.encode(*(np.array(values, dtype=np.int32) for values in (ids, lengths, slots)))

    for ids, lengths, slots in (
        ([3, 23], [2], [0]),
        ([3, -1], [2], [0]),
        ([3, 4], [2], [2]),
        ([3] * 9, [9], [0]),
    ):
        with pytest.raises(IndexError, match="out of range"):
            encode(ids, lengths, slots)
    with pytest.raises(ValueError, match="add up"):
        encode([3, 4, 5], [2], [0])
    results = np.empty((1, 2), dtype=np.float32), np.empty((1, 2), dtype=np.int64)
    for values in ((23, 0, 0, 0), (1, 2, 0, 0), (1, 0, 2, 0), (1, 0, 0, 8), (1, 0, 0, -1)):
        with pytest.raises(IndexError, match="out of range"):
            session.feed(*(np.array([value]) for value in values), *results, None)
    with pytest.raises(TypeError):
        session.feed(*(np.array([0], dtype=np.int32) for _ in range(4)), *results, None)
    asked = np.array([[5]]), np.empty((1, 1), dtype=np.float32)
    with pytest.raises(ValueError, match="rows of the last feed"):
        session.log_probs_of(*asked)
    encode([3], [1], [0])
    session.feed(*(np.array([value]) for value in (1, 0, 0, 0)), *results, None)
    session.log_probs_of(*asked)
    with pytest.raises(ValueError, match="rows of the last feed"):
        session.log_probs_of(np.array([[5], [5]]), np.empty((2, 1), dtype=np.float32))
    for token in (-1, 23):
        with pytest.raises(IndexError, match="a token is out of range"):
            session.log_probs_of(np.array([[token]]), asked[1])
    session.admit(**admission())
    for change, error in (
        ({"slot": 2}, "a slot is out"),
        ({"rows": []}, "a row is out"),
        ({"rows": [0, 2]}, "a row is out"),
        ({"source_ids": (23,)}, "a source id or length is out"),
        ({"source_ids": (3,) * 9}, "a source id or length is out"),
        ({"prefix_ids": ()}, "a prefix id is out"),
        ({"prefix_ids": (-1,)}, "a prefix id is out"),
        ({"forced_ids": (23,)}, "a forced id is out"),
        ({"forced_ids": (5, -1)}, "a forced id is out"),
        ({"phrases": (((5, 23),),)}, "a phrase's id is out"),
        ({"phrases": ((),)}, "a phrase has no alternatives"),
        ({"phrases": (((5,), ()),)}, "a phrase has no tokens"),
        ({"phrases": (((5,),),) * 17}, "too many phrases"),
        ({"phrases": (((5,) * 65,),)}, "too many phrases"),
        ({"phrases": (((5,),),), "sampling": drawn()}, "what is drawn cannot have phrases"),
        ({"sampling": drawn(temperature=-1.0)}, "nothing can be drawn so"),
        ({"sampling": drawn(top_k=0)}, "nothing can be drawn so"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must not be negative"),
        ({"num_groups": 0}, "beams cannot be divided so"),
        ({"num_groups": 2}, "beams cannot be divided so"),
        ({"suppressed_ids": (23,)}, "a suppressed id is out"),
        ({"suppressed_ids": (5, -1)}, "a suppressed id is out"),
        ({"max_length": 8}, "a target length is out"),
        ({"candidates": 1}, "a search is impossible"),
        ({"num_hypotheses": 2}, "a search is impossible"),
        ({"stopping": "never"}, "stopping must be exact"),
    ):
        with pytest.raises((IndexError, ValueError), match=error):
            session.admit(**admission(**change))
    nothing: dict[str, list[object]] = {"names": [], "slots": [], "rows": [], "requests": []}
    for one_too_few in (nothing, *(admission() | {name: []} for name in nothing)):
        with pytest.raises(ValueError, match="at least one sentence"):
            session.admit(**one_too_few)


@pytest.mark.parametrize("name", [*REQUEST, *SEARCH])
def test_a_request_that_lacks_something_is_refused_with_its_name(name: str) -> None:
    network = packed()
    session = kernels.load().session(
        network.packed,
        network.team,
        max_rows=1,
        max_slots=1,
        max_source_length=8,
        max_target_length=8,
        eos_id=TOKENS.eos_id,
    )
    with pytest.raises(AttributeError, match=name):
        session.admit(**admission(without=name))


def unlayered_network(**changes: object) -> object:
    """A network without layers, some of it wrong."""
    made = kernels.load()
    table = made.matrix(np.ones((4, 2), np.int8), np.ones(4, np.float32), None)
    settings: dict[str, object] = {
        "d_model": 2,
        "encoder_d_ff": 4,
        "decoder_d_ff": 4,
        "max_positions": 3,
        "heads": (2, 16, 16, 1.0),
        "is_pre_norm": False,
        "activation": "relu",
        "is_gated": False,
        "decoder_cell": "ssru",
        "embedding_factor": 1.0,
        "output_factor": 1.0,
        "source_table": table,
        "target_table": table,
        "output": table,
        "source_positions": None,
        "target_positions": None,
        "encoder_bias": None,
        "decoder_bias": None,
        "suppressed": [],
    }
    return made.network(**(settings | changes))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"activation": "tanh"}, "activation must be relu, gelu, gelu-tanh, gelu-sigmoid or silu"),
        ({"decoder_cell": "lstm"}, "decoder_cell must be self-attention or ssru"),
        ({"heads": (2, 16, 8, 1.0)}, "head widths must be multiples of 16"),
        ({"source_positions": np.zeros((2, 2), np.float32)}, "positions must be"),
        ({"target_positions": np.zeros((3, 4), np.float32)}, "positions must be"),
        ({"encoder_bias": np.zeros((2, 4), np.float32)}, "a bias must be"),
        ({"decoder_bias": np.zeros((1, 5), np.float32)}, "a bias must be"),
    ],
)
def test_a_network_of_other_shapes_is_refused(change: dict[str, object], error: str) -> None:
    unlayered_network(encoder_bias=np.zeros((2, 5), np.float32))
    with pytest.raises(ValueError, match=error):
        unlayered_network(**change)


@pytest.mark.parametrize("cell", ["self-attention", "ssru"])
def test_a_decoder_layer_without_the_matrices_of_its_cell_is_refused(cell: str) -> None:
    network = unlayered_network(decoder_cell=cell)
    made = kernels.load()
    matrix = made.matrix(np.ones((2, 2), np.int8), np.ones(2, np.float32), None)
    norm = made.norm(np.ones(2, np.float32), None, 1e-6, True)
    matrices = ("cross_query", "cross_key_value", "cross_output", "up", "down")
    norms = ("cell_norm", "cross_norm", "feed_forward_norm")
    num_matrices = 1 if cell == "ssru" else 2
    lacking: list[list[object]] = [
        [],
        [matrix] * (num_matrices - 1),
        [matrix] * (num_matrices + 1),
        [matrix] * (num_matrices - 1) + [None],
    ]
    for given in lacking:
        with pytest.raises(ValueError, match="the matrices of its cell"):
            network.add_decoder_layer(
                cell=given, **dict.fromkeys(matrices, matrix), **dict.fromkeys(norms, norm)
            )
