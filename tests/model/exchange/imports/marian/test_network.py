"""Marian's tensors as ours: shared and separate layers, what is missing, what is left over."""

from dataclasses import replace

import pytest
import torch

from model.exchange.imports.imported import QuantisedRows
from model.exchange.imports.marian.bin import open_bin
from model.exchange.imports.marian.files import MarianFile, MarianTensor
from model.exchange.imports.marian.network import MarianNetwork, find_network
from model.exchange.imports.marian.npz import open_npz
from model.exchange.imports.marian.options import MarianShape, parse_shape
from support.marian_oracle import FIXTURES

STUDENT = open_npz(FIXTURES / "student" / "model.npz")


def shape_of(file: MarianFile, **changes: object) -> MarianShape:
    shape, problems = parse_shape({**file.options, **changes})
    assert shape is not None, problems
    return shape


def built(file: MarianFile, **changes: object) -> MarianNetwork:
    found = find_network(file, shape_of(file, **changes))
    assert found.network is not None, found.problems
    return found.network


def tensor(*shape: int) -> MarianTensor:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    return MarianTensor(shape=shape, has_output_rows=False, read=lambda: values)


def with_tensors(changes: dict[str, MarianTensor], *, without: str = "–") -> MarianFile:
    kept = {name: value for name, value in STUDENT.tensors.items() if without not in name}
    return replace(STUDENT, tensors={**kept, **changes})


def test_square_projections_are_transposed() -> None:
    network = built(STUDENT)
    ours = network.tensors["encoder.layers.1.self_attention.k_proj.weight"].read()
    theirs = STUDENT.tensors["encoder_l2_self_Wk"].read()
    assert isinstance(ours, torch.Tensor)
    assert isinstance(theirs, torch.Tensor)
    assert torch.equal(ours, theirs.T)
    assert not torch.equal(ours, theirs)


def test_int8_matrices_stay_as_they_are_stored() -> None:
    network = built(open_bin(FIXTURES / "int8" / "model.intgemm8.bin"))
    rows = network.tensors["decoder.layers.0.ssru.candidate_proj.weight"].read()
    assert isinstance(rows, QuantisedRows)
    table = network.tensors["source_embedding.weight"].read()
    assert isinstance(table, torch.Tensor)


def test_an_int8_table_has_a_row_of_zeros_more() -> None:
    quanta = torch.ones(425, 32, dtype=torch.int8)
    rows = QuantisedRows(quanta=quanta, scale=torch.full((425,), 0.5))
    table = MarianTensor(shape=(425, 32), has_output_rows=False, read=lambda: rows)
    found = built(with_tensors({"Wemb": table})).tensors["source_embedding.weight"]
    values = found.read()
    assert isinstance(values, QuantisedRows)
    assert found.shape == values.quanta.shape == (426, 32)
    assert not values.quanta[-1].any()
    assert len(values.scale) == 426


def test_rows_without_a_token_have_no_probability() -> None:
    bias = built(STUDENT).tensors["output_bias"].read()
    assert isinstance(bias, torch.Tensor)
    assert bias[-1].exp() == 0
    assert torch.isfinite(bias.half()).all()
    without = with_tensors({}, without="logit_out_b")
    bias = built(without, **{"output-omit-bias": True}).tensors["output_bias"].read()
    assert isinstance(bias, torch.Tensor)
    assert not bias[:-1].any()
    assert bias[-1].exp() == 0


def test_tied_layers_share_the_tensors_of_one() -> None:
    file = with_tensors({}, without="decoder_l2")
    network = built(file, **{"transformer-tied-layers": [1, 1]})
    for name in ("cross_attention.q_proj.weight", "ssru.forget_proj.bias"):
        first = network.tensors[f"decoder.layers.0.{name}"].read()
        second = network.tensors[f"decoder.layers.1.{name}"].read()
        assert isinstance(first, torch.Tensor)
        assert isinstance(second, torch.Tensor)
        assert torch.equal(first, second)


def test_attention_without_a_projection_has_one_that_changes_nothing() -> None:
    kept = {
        name: value for name, value in STUDENT.tensors.items() if not name.endswith(("_Wo", "_bo"))
    }
    network = built(replace(STUDENT, tensors=kept), **{"transformer-no-projection": True})
    weight = network.tensors["encoder.layers.0.self_attention.out_proj.weight"].read()
    assert isinstance(weight, torch.Tensor)
    assert torch.equal(weight, torch.eye(32))


def test_learned_positions_are_one_table_for_both_sides_and_embeddings_are_not_scaled() -> None:
    network = built(
        with_tensors({"Wpos": tensor(50, 32)}),
        **{"transformer-train-position-embeddings": True},
    )
    assert (network.config.position, network.config.max_positions) == ("learned", 50)
    assert not network.config.scale_embedding
    assert {"source_positions.vectors.weight", "target_positions.vectors.weight"} < set(
        network.tensors
    )


def test_learned_positions_without_a_table_are_sinusoids() -> None:
    config = built(STUDENT, **{"transformer-train-position-embeddings": True}).config
    assert (config.position, config.scale_embedding) == ("sinusoidal-m2m100", True)


def test_norms_before_a_cell_have_a_name_of_their_own() -> None:
    marks = {"Wo_ln": "Wo_ln", "ffn_ffn_ln": "ffn_ffn_ln", "rnn_ffn_ln": "rnn_ln"}
    tensors = {}
    for name, value in STUDENT.tensors.items():
        mark = next((mark for mark in marks if mark in name), None)
        tensors[name if mark is None else name.replace(mark, marks[mark]) + "_pre"] = value
    for stack in ("encoder", "decoder"):
        tensors |= {f"{stack}_top_ln_{part}": tensor(1, 32) for part in ("scale", "bias")}
    network = built(
        replace(STUDENT, tensors=tensors),
        **{
            "transformer-preprocess": "n",
            "transformer-postprocess": "da",
            "transformer-postprocess-top": "n",
        },
    )
    assert network.unused == ()
    assert "decoder.layers.1.ssru_norm.bias" in network.tensors


@pytest.mark.parametrize("name", ["decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"])
def test_an_untied_output_layer_is_read_in_both_its_forms(name: str) -> None:
    shape = (425, 32) if name.endswith("Wt") else (32, 425)
    file = with_tensors({name: tensor(*shape)})
    untied = {"tied-embeddings-all": False, "tied-embeddings-src": True}
    network = built(file, **untied)
    found = network.tensors["output_projection.weight"]
    values = found.read()
    theirs = file.tensors[name].read()
    assert isinstance(values, torch.Tensor)
    assert isinstance(theirs, torch.Tensor)
    assert torch.equal(values[:-1], theirs if name.endswith("Wt") else theirs.T)
    assert found.shape == (426, 32)


def test_multipliers_of_activations_are_known_and_other_tensors_are_left_over() -> None:
    file = with_tensors(
        {
            "F0::decoder_l1_rnn_W_QuantMultA": tensor(1),
            "Wemb_QuantMultA": tensor(1),
            "odd": tensor(3),
        }
    )
    network = built(file)
    assert network.has_alphas
    assert network.unused == ("odd",)
    assert not built(STUDENT).has_alphas


def test_everything_that_is_missing_or_misshapen_is_told() -> None:
    file = with_tensors({"encoder_l1_ffn_W1": tensor(32, 65)}, without="decoder_l2_context_W")
    found = find_network(file, shape_of(file))
    problems = found.problems
    assert found.network is None
    assert "encoder_l1_ffn_W1 has shape (32, 65); the options need (32, 64)" in problems
    assert sum("is missing" in problem for problem in problems) == 6
    file = with_tensors({"decoder_l2_context_V": tensor(32, 32)}, without="decoder_l2_context_Wo")
    found = find_network(file, shape_of(file))
    assert found.unused == ("decoder_l2_context_V",)
    assert "decoder_l2_context_Wo is missing" in found.problems


def test_without_a_table_everything_else_is_told_still() -> None:
    file = with_tensors({"odd": tensor(3)}, without="emb")
    del file.tensors["decoder_l1_ffn_W2"]  # type: ignore[attr-defined]  # a dict of this test's
    found = find_network(file, shape_of(STUDENT))
    assert found.network is None
    assert found.problems == ("Wemb is missing", "decoder_l1_ffn_W2 is missing")
    assert found.unused == ("odd",)


def test_a_width_that_is_not_known_says_nothing_about_shapes_or_what_is_left_over() -> None:
    file = with_tensors({"odd": tensor(3)}, without="decoder_l1_ffn_W2")
    for changes in ({"dim-emb": "wide"}, {"enc-depth": 0}):
        shape, problems = parse_shape({**file.options, **changes})
        assert shape is not None
        assert len(problems) == 1
        found = find_network(file, shape)
        assert found.problems == ("decoder_l1_ffn_W2 is missing",)
        assert found.unused == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"transformer-decoder-autoreg": "average-attention"},
        {"dec-cell": "gru"},
        {"transformer-rnn-projection": True},
        {"transformer-preprocess": "n"},
        {"transformer-postprocess": "dhn"},
        {"transformer-postprocess": "dar", "transformer-preprocess": "n"},
        {"transformer-postprocess-emb": "r"},
        {"transformer-decoder-autoreg": "rnn?", "transformer-postprocess": "n"},
    ],
)
def test_a_cell_or_norms_that_are_not_known_say_nothing_of_tensors(
    changes: dict[str, object],
) -> None:
    shape, problems = parse_shape({**STUDENT.options, **changes})
    assert shape is not None
    assert problems
    found = find_network(STUDENT, shape)
    assert (found.problems, found.unused, found.network) == ((), (), None)
    lacking = with_tensors({"odd": tensor(3)}, without="decoder_l1_ffn_W2")
    found = find_network(lacking, shape)
    assert (found.problems, found.unused) == (("decoder_l1_ffn_W2 is missing",), ())


def test_a_shape_that_cannot_be_is_told_with_its_tensors() -> None:
    file = with_tensors({}, without="decoder_l1_ffn_W2")
    found = find_network(file, shape_of(file, **{"transformer-heads": 5}))
    assert found.network is None
    assert len(found.problems) == 2
    assert "5" in found.problems[0]
