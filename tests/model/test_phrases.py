"""How far a sequence of tokens has come with phrases, against a plain count of them."""

import random

from model.phrases import automaton_of, num_missed
from support.reference_search import phrases_met


def test_every_sequence_has_met_and_begun_what_a_plain_count_finds() -> None:
    rng = random.Random(3)
    for _ in range(200):
        phrases = tuple(
            tuple(
                tuple(rng.choices(range(4), k=rng.randint(1, 3))) for _ in range(rng.choice([1, 2]))
            )
            for _ in range(rng.randint(1, 4))
        )
        automaton = automaton_of(phrases)
        tokens: list[int] = []
        node, met = 0, 0
        for _ in range(12):
            tokens.append(rng.randrange(5))
            node, met = automaton.step(node, met, tokens[-1])
            is_begun = bool(automaton.goals[node] & ~met)
            assert (met.bit_count(), is_begun) == phrases_met(phrases, tokens)[:2]
        assert num_missed(phrases, tokens) == len(phrases) - met.bit_count()


def test_one_place_serves_one_phrase() -> None:
    twice = (((5, 6),), ((5, 6),))
    assert num_missed(twice, (5, 6)) == 1
    assert num_missed(twice, (5, 6, 7, 5, 6)) == 0
    assert num_missed((((6,),), ((5, 6),)), (5, 6)) == 1


def test_any_alternative_will_do_and_a_false_start_does_no_harm() -> None:
    assert num_missed((((5, 6), (7,)),), (1, 7)) == 0
    assert num_missed((((5, 5, 6),),), (5, 5, 5, 6)) == 0
    assert num_missed((((5, 6),),), (5, 7, 6)) == 1
    assert num_missed((), (5,)) == 0
