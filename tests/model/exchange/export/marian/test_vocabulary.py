"""Marian's tables of tokens, and the languages that stand beside them."""

from model.exchange.export.marian.vocabulary import yaml_table
from model.exchange.imports.marian.vocabulary import parse_yaml_table

TOKENS = ("</s>", "<unk>", "no", "~", "null", '"', "\\", "'", ": ", "#", "? ", "\x85", "\u2028",
          "\ufeff", "\t", "\x1f", "▁the", ">>deu<<", "𝄞", "- ", "1", "\xa0")  # fmt: skip


def test_every_token_is_read_back_with_its_id() -> None:
    table = dict(enumerate(TOKENS))
    found, problems = parse_yaml_table(yaml_table(table))
    assert problems == []
    assert found == {token: index for index, token in table.items()}


def test_tokens_stand_in_the_order_of_their_ids_one_a_line() -> None:
    assert yaml_table({3: "c", 0: "a\n", 1: "b"}) == '"a\\u000a": 0\n"b": 1\n"c": 3\n'
