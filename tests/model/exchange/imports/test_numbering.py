import pytest
import torch

from model.errors import ConfigError
from model.exchange.imports.imported import QuantisedRows
from model.exchange.imports.numbering import TokenNames, number_pieces

NAMES = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start="<s>", has_source_eos=True)
OPENNMT = ["<unk>", "<blank>", "<s>", "</s>", "a", "b"]


def test_a_list_with_padding_stays_as_it_is() -> None:
    found = number_pieces(OPENNMT, OPENNMT, NAMES)
    assert found.source.is_unchanged
    assert found.target.is_unchanged
    tokens = found.tokens
    assert (tokens.pad_id, tokens.eos_id, tokens.unk_id, tokens.start_id) == (1, 3, 0, 2)
    assert tokens.suppressed_ids == (0, 1, 2)
    assert found.source_table is found.target_table
    table = torch.randn(6, 2)
    assert found.source.of(table) is table


def test_a_zero_row_pads_where_no_piece_does_and_starts_a_zero_vector() -> None:
    pieces = ["</s>", "<unk>", "a", "b"]
    names = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start=None, has_source_eos=True)
    found = number_pieces(pieces, pieces, names)
    assert (found.tokens.pad_id, found.tokens.start_id) == (4, 4)
    assert found.tokens.suppressed_ids == (1, 4)
    table = torch.randn(4, 2)
    moved = found.target.of(table)
    assert isinstance(moved, torch.Tensor)
    assert torch.equal(moved[:4], table)
    assert moved[4].tolist() == [0, 0]
    bias = found.target.bias(torch.zeros(4)).tolist()
    assert bias[:4] == [0] * 4
    assert bias[4] < -1000


def test_a_decoder_that_starts_from_a_zero_vector_does_not_start_from_a_pad_of_its_own() -> None:
    names = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start=None, has_source_eos=True)
    assert number_pieces(OPENNMT, OPENNMT, names).tokens.start_id == 6


def test_special_tokens_have_one_id_on_both_sides() -> None:
    source = ["x", "<unk>", "<blank>", "y", "z", "</s>"]
    found = number_pieces(source, OPENNMT, NAMES)
    assert found.tokens == number_pieces(OPENNMT, OPENNMT, NAMES).tokens
    by_id = {index: piece for piece, index in found.source_table.items()}
    assert [by_id.get(index) for index in range(7)] == [
        *("<unk>", "<blank>", None, "</s>", "x", "y", "z"),
    ]
    table = torch.arange(6.0)[:, None].expand(6, 2)
    moved = found.source.of(table)
    assert isinstance(moved, torch.Tensor)
    assert moved[:, 0].tolist() == [1, 2, 0, 5, 0, 3, 4]
    assert found.target.is_unchanged


def test_quantised_rows_are_moved_with_their_scales() -> None:
    source = ["a", "<unk>", "</s>"]
    names = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start="</s>", has_source_eos=True)
    found = number_pieces(source, ["<unk>", "</s>"], names)
    quanta = torch.tensor([[5], [6], [7]], dtype=torch.int8)
    moved = found.source.of(QuantisedRows(quanta=quanta, scale=torch.tensor([0.1, 0.2, 0.3])))
    assert isinstance(moved, QuantisedRows)
    assert moved.quanta[:, 0].tolist() == [6, 7, 0, 5]
    assert moved.scale.tolist() == pytest.approx([0.2, 0.3, 1.0, 0.1])
    assert found.tokens.pad_id == 2


def test_a_source_shorter_than_the_special_ids_is_filled_up() -> None:
    target = ["a", "b", "c", "d", "<unk>", "</s>", "<pad>", "<s>"]
    found = number_pieces(["<unk>", "</s>", "<pad>"], target, NAMES)
    assert found.source.old == (None, None, None, None, 0, 1, 2, None)


def test_pieces_that_are_alike_have_the_first_row() -> None:
    pieces = [*OPENNMT, "a"]
    found = number_pieces(pieces, pieces, NAMES)
    assert found.target_table["a"] == 4
    assert found.tokens.suppressed_ids == (0, 1, 2, 6)


def test_every_special_token_that_is_missing_is_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        number_pieces(["a"], ["a", "<unk>"], NAMES)
    for problem in (
        "the source vocabulary lacks the special token '<unk>'",
        "the source vocabulary lacks the special token '</s>'",
        "the target vocabulary lacks the special token '</s>'",
        "the target vocabulary lacks the special token '<s>'",
    ):
        assert problem in str(caught.value)


def test_a_source_without_an_end_needs_none() -> None:
    names = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start="<s>", has_source_eos=False)
    found = number_pieces(["<unk>", "<blank>", "a", "b", "c"], OPENNMT, names)
    assert not found.tokens.has_source_eos
    assert found.source_table == {"<unk>": 0, "<blank>": 1, "a": 4, "b": 5, "c": 6}
