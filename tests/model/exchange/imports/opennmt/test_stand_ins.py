import pickle
from collections import defaultdict
from functools import partial

import pytest

from model.exchange.imports.opennmt.stand_ins import StandIn, asked_globals, stand_ins


def test_names_are_those_that_pickles_ask_for_and_no_others() -> None:
    data = pickle.dumps({"posix system": [1]}, protocol=2)
    more = pickle.dumps([defaultdict(list), partial(print)], protocol=2)
    assert asked_globals(data + more + b"rest", num_pickles=2) == {
        "collections.defaultdict",
        "functools.partial",
        "__builtin__.list",
        "__builtin__.print",
    }
    assert asked_globals(data + more, num_pickles=1) == frozenset()


def test_what_is_no_pickle_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="opcode"):
        asked_globals(b"\xff")


def test_only_the_old_libraries_get_stand_ins() -> None:
    names = {
        *("torchtext.vocab.Vocab", "onmt.inputters.x", "functools.partial"),
        *("collections.defaultdict", "posix.system", "torchtexts.x", "builtins.eval"),
    }
    found = {name: kind for kind, name in stand_ins(names)}
    assert found.keys() == {
        *("torchtext.vocab.Vocab", "onmt.inputters.x", "functools.partial"),
        "collections.defaultdict",
    }
    assert found["torchtext.vocab.Vocab"] is StandIn
    assert found["collections.defaultdict"](list) == {}


def test_a_stand_in_keeps_attributes_and_nothing_else() -> None:
    made = StandIn("whatever", 3)
    made.__setstate__({"itos": ["a"]})
    assert made.values == {"itos": ["a"]}
    made.__setstate__(("a", "tuple"))
    assert made.values == {}
