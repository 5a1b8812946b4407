"""Tables grow to the byte as foreseen, and keep room for no more than is needed."""

import pytest
import torch

from model.decode.backends.cuda.growth import Room, Sizes, doubled, growth_bytes
from support.device_memory import tensors
from support.grid_tables import grown_tables


@pytest.mark.parametrize("needed", [(5, 80, 80), (2, 90, 96), (7, 200, 160)])
def test_growth_takes_what_was_foreseen_to_the_byte(needed: tuple[int, int, int]) -> None:
    tables = grown_tables(torch.zeros, torch.float32, device=torch.device("cpu"))
    slots, columns, sources = needed
    asked = Sizes(num_slots=slots, num_columns=columns, source_length=sources)
    sizes = doubled(asked.within(tables._most), tables.sizes, most=tables._most)
    before = [tensor.nbytes for tensor in tensors(tables)]
    logits = (sizes.num_slots - tables.num_slots) * tables.width * tables.vocab_size * 8
    foreseen = tables.bytes_to_grow(sizes) - logits
    tables.reserve(asked)
    assert tables.sizes == sizes
    after = [tensor.nbytes for tensor in tensors(tables)]
    assert foreseen == growth_bytes(list(zip(before, after, strict=True)))


def test_what_was_kept_for_longer_sentences_is_given_up_for_others() -> None:
    tables = grown_tables(torch.zeros, torch.float32, device=torch.device("cpu"))
    tables._room = Room(lambda: 2**20)
    tables.num_columns = 16  # of 80
    tables._promised = tables.sizes
    tables.foresee(60)
    kept = tables._room._promised[2]
    tables.foresee(20)
    assert tables._promised.num_columns == 64
    assert tables._room._promised[2] == kept
    tables.foresee_only(20)
    assert tables._promised.num_columns == 32
    assert tables._room._promised[2] < kept
    tables.foresee_only(60)
    assert tables._promised.num_columns == 32  # for the rest nobody was asked


def test_logits_of_the_sentences_that_have_a_place_are_counted_too() -> None:
    tables = grown_tables(torch.zeros, torch.float32, device=torch.device("cpu"))
    logits = 2 * 2 * tables.vocab_size * 4
    assert tables.bytes_to_have(tables.sizes) == logits
    assert tables.first_bytes() == sum(tensor.nbytes for tensor in tensors(tables)) + logits
