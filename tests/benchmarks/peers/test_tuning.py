"""How settings are chosen: with a rival whose times are written down."""

from collections.abc import Iterator

import pytest

pytest.importorskip("psutil", reason="psutil comes with the extra bench")

from benchmarks.peers import tuning
from benchmarks.peers.engines import Settings
from benchmarks.peers.rivals import ACTIVE, CTRANSLATE2, WAIT_POLICY, Timing, all_specs
from benchmarks.peers.tuning import choose, file_candidates, runs_to_repeat, small_candidates
from benchmarks.peers.work import Work, equal_work

SAMPLE = equal_work(32, vocab_size=100, beam_size=1)
FIRST, SECOND, SLOW = ({"max_rows": rows} for rows in (64, 128, 256))


class Scripted:
    """A rival whose runs on the sample take what its script says."""

    def __init__(self, seconds: dict[int, list[float]]) -> None:
        self._seconds: dict[int, Iterator[float]] = {k: iter(v) for k, v in seconds.items()}
        self.clock = 0.0

    def translate(self, work: Work, settings: Settings, *, with_targets: bool = False) -> Timing:
        assert not with_targets
        if len(work.sources) < len(SAMPLE.sources):
            return Timing(seconds=0.0, num_tokens=1)
        seconds = next(self._seconds[int(settings["max_rows"])])
        self.clock += seconds
        return Timing(seconds=seconds, num_tokens=1)


def test_one_disturbed_run_does_not_decide() -> None:
    rival = Scripted({64: [1.0, 1.1, 1.1], 128: [1.3, 0.8, 0.9], 256: [1.5]})
    chosen, tried = choose(rival, [FIRST, SECOND, SLOW], SAMPLE, lambda: rival.clock)
    assert chosen == SECOND
    assert tried == [
        {"settings": FIRST, "seconds": 1.0, "runs": [1.0, 1.1, 1.1]},
        {"settings": SECOND, "seconds": 0.8, "runs": [1.3, 0.8, 0.9]},
        {"settings": SLOW, "seconds": 1.5, "runs": [1.5]},
    ]


def test_further_runs_are_of_what_is_near_and_the_fastest_come_first() -> None:
    assert runs_to_repeat([1.4, 3.0, 1.0]) == [2, 0, 2, 0]
    assert runs_to_repeat([1.0, 3.0]) == []


def test_further_runs_end_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MORE_SECONDS", 2.5)
    rival = Scripted({64: [2.0, 2.0], 128: [2.1, 2.2]})
    _, tried = choose(rival, [FIRST, SECOND], SAMPLE, lambda: rival.clock)
    assert [one["runs"] for one in tried] == [[2.0, 2.0], [2.1, 2.2]]


def test_one_candidate_needs_no_trial() -> None:
    assert choose(Scripted({}), [FIRST], SAMPLE, lambda: 0.0) == (FIRST, [])


def test_threads_of_ctranslate2_may_wait_actively_where_there_are_several_in_a_batch() -> None:
    (spec,) = [spec for spec in all_specs(2) if spec.name == CTRANSLATE2]
    for candidates in (small_candidates(spec, 1), small_candidates(spec, 8), file_candidates(spec)):
        active = [one for one in candidates if one.get(WAIT_POLICY) == ACTIVE]
        assert active
        assert all(one["intra_threads"] == 2 for one in active)
        assert len(candidates) == len({tuple(one.items()) for one in candidates})
    (alone,) = [spec for spec in all_specs(1) if spec.name == CTRANSLATE2]
    for candidates in (small_candidates(alone, 8), file_candidates(alone)):
        assert not any(WAIT_POLICY in one for one in candidates)
