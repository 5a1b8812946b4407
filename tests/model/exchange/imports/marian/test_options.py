"""Options: what is honoured, what does not matter, and that all else is refused together."""

import pytest

from model.exchange.imports.marian.npz import open_npz
from model.exchange.imports.marian.options import parse_shape
from support.marian_oracle import FIXTURES

BASE = dict(open_npz(FIXTURES / "student" / "model.npz").options)


def test_the_options_of_a_student_are_all_known() -> None:
    shape, problems = parse_shape(BASE)
    assert problems == []
    assert shape is not None
    assert (shape.cell, shape.activation, shape.placement) == ("ssru", "relu", "post")
    assert shape.embeddings_shared
    assert shape.output_tied


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"type": "s2s"}, "type is 's2s'"),
        ({"transformer-decoder-autoreg": "average-attention"}, "'average-attention'"),
        ({"dec-cell": "gru"}, "dec-cell is 'gru'"),
        ({"transformer-rnn-projection": True}, "transformer-rnn-projection is on"),
        ({"transformer-postprocess": "dhn"}, "neither post-norm"),
        ({"transformer-preprocess": "n"}, "neither post-norm"),
        ({"transformer-postprocess-top": "n"}, "neither post-norm"),
        ({"transformer-preprocess": "n", "transformer-postprocess": "dar"}, "mix LayerNorm"),
        ({"transformer-ffn-depth": 3}, "transformer-ffn-depth is 3"),
        ({"transformer-ffn-activation": "tanh"}, "'tanh'"),
        ({"transformer-attention-mask": "alibi"}, "transformer-attention-mask is 'alibi'"),
        ({"transformer-no-bias": True}, "transformer-no-bias is True"),
        ({"transformer-no-affine": True}, "transformer-no-affine is True"),
        ({"transformer-pool": True}, "transformer-pool is True"),
        ({"transformer-disable-position-embeddings": True}, "disable-position-embeddings"),
        ({"right-left": True}, "right-left is True"),
        ({"lemma-dim-emb": 64}, "lemma-dim-emb is 64"),
        ({"input-types": ["sequence", "class"]}, "input-types"),
        ({"transformer-tied-layers": [1, 1, 1]}, "transformer-tied-layers"),
        ({"some-future-option": "on"}, "some-future-option is 'on'"),
        ({"dim-emb": "wide"}, "dim-emb is 'wide'"),
        ({"dim-emb": 2**40}, "dim-emb is"),
        ({"enc-depth": True}, "enc-depth is True"),
        ({"tied-embeddings": "yes"}, "tied-embeddings is 'yes'"),
    ],
)
def test_what_changes_the_network_and_is_not_honoured_is_refused(
    changes: dict[str, object], problem: str
) -> None:
    _, problems = parse_shape({**BASE, **changes})
    assert any(problem in found for found in problems), problems


def test_everything_that_is_in_the_way_is_told_at_once() -> None:
    _, problems = parse_shape(
        {**BASE, "transformer-pool": True, "right-left": True, "dec-cell": "gru"}
    )
    assert len(problems) == 3


def test_unknown_options_that_are_off_do_not_matter() -> None:
    for value in (False, 0, "", [], None):
        assert parse_shape({**BASE, "some-future-option": value})[1] == []
