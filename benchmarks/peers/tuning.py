"""Settings that every rival may choose from, and how the fastest are found.

Owns the candidates and their trial. One run decides nothing where several are near: whatever comes
within 40 % of the best is run twice more, and the least time of each counts.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from benchmarks.peers.engines import Settings
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_INT8, Spec, Timing, ctranslate2_settings
from benchmarks.peers.work import Work

NEAR = 1.4
"""How much longer than the best a first run may take to be repeated."""
NUM_MORE_RUNS = 2
MORE_SECONDS = 20.0
"""After which no further run of one rival at one point begins; the nearest are run first."""
_NUM_WARM_UP = 8
_ROWS = (64, 128, 256)
_ACTIVE_BATCH = 32
"""Of the one setting of a file whose threads wait actively: its shares are large."""


class Translates(Protocol):
    """What can be timed: a rival's process."""

    def translate(self, work: Work, settings: Settings, *, with_targets: bool = False) -> Timing:
        """Let it translate."""


def small_candidates(spec: Spec, count: int) -> list[Settings]:
    """CTranslate2 may use its threads within a batch or beside each other, on one or two.

    Threads within a batch may wait actively for their next share, as ours do: a step of one
    sentence has many small shares.
    """
    if spec.name != CTRANSLATE2:
        return [spec.settings]
    num_threads = int(spec.settings["inter_threads"]) * int(spec.settings["intra_threads"])
    together = [
        ctranslate2_settings(kind, intra_threads=num_threads) for kind in ("int8", "float32")
    ]
    if num_threads > 1:
        together.append(ctranslate2_settings(intra_threads=num_threads, waits_actively=True))
        together.append(ctranslate2_settings(intra_threads=1))
    if count == 1:
        return together
    half = -(-count // 2)
    return [
        *together,
        ctranslate2_settings(intra_threads=num_threads, max_batch_size=half),
        *(
            [
                ctranslate2_settings(
                    intra_threads=num_threads, max_batch_size=half, waits_actively=True
                )
            ]
            if num_threads > 1
            else []
        ),
        ctranslate2_settings(inter_threads=num_threads, max_batch_size=half),
    ]


def file_candidates(spec: Spec) -> list[Settings]:
    """How many at once: rows for our int8, sentences or tokens for CTranslate2."""
    if spec.name == DRAGOMAN_INT8:
        return [{"max_rows": rows} for rows in _ROWS]
    if spec.name != CTRANSLATE2:
        return [spec.settings]
    num_threads = int(spec.settings["inter_threads"]) * int(spec.settings["intra_threads"])
    layouts = [(1, num_threads)]
    layouts += [(num_threads, 1)] if num_threads > 1 else []
    batches = [("examples", 16), ("examples", 32), ("examples", 64), ("tokens", 1024)]
    found = [
        ctranslate2_settings(
            inter_threads=inter_threads,
            intra_threads=intra_threads,
            batch_type=batch_type,
            max_batch_size=size,
        )
        for inter_threads, intra_threads in layouts
        for batch_type, size in batches
    ]
    if num_threads > 1:
        found.append(
            ctranslate2_settings(
                intra_threads=num_threads, max_batch_size=_ACTIVE_BATCH, waits_actively=True
            )
        )
    return found


def warm_up_work(sample: Work) -> Work:
    """The few sentences that every setting is warmed up with."""
    return sample.sample(min(_NUM_WARM_UP, len(sample.sources)))


def choose(
    rival: Translates,
    candidates: Sequence[Settings],
    sample: Work,
    clock: Callable[[], float],
) -> tuple[Settings, list[dict[str, object]]]:
    """The fastest settings on the sample, and the least time and all times of each.

    Args:
        rival: Is left with what was run last, so it is to be warmed up after this.
        candidates: One or more; of one alone nothing is timed.
        sample: What they are tried with.
        clock: Seconds, monotonic; further runs end when `MORE_SECONDS` are over.
    """
    if len(candidates) == 1:
        return candidates[0], []
    few = warm_up_work(sample)

    def seconds(place: int) -> float:
        rival.translate(few, candidates[place])
        return rival.translate(sample, candidates[place]).seconds

    times = [[seconds(place)] for place in range(len(candidates))]
    deadline = clock() + MORE_SECONDS
    for place in runs_to_repeat([first for (first,) in times]):
        if clock() >= deadline:
            break
        times[place].append(seconds(place))
    tried: list[dict[str, object]] = [
        {"settings": candidate, "seconds": round(min(own), 4), "runs": [round(t, 4) for t in own]}
        for candidate, own in zip(candidates, times, strict=True)
    ]
    best = min(range(len(times)), key=lambda place: min(times[place]))
    return candidates[best], tried


def runs_to_repeat(first_seconds: Sequence[float]) -> list[int]:
    """Places of what is run again, in order: all that are near, the fastest first, then all again.

    None where the best has nobody near.
    """
    limit = NEAR * min(first_seconds)
    near = [place for place, seconds in enumerate(first_seconds) if seconds <= limit]
    near.sort(key=lambda place: first_seconds[place])
    return near * NUM_MORE_RUNS if len(near) > 1 else []
