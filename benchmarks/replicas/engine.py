"""An engine of the simulation: what waits, what runs, and what a turn of it takes.

Owns the state of one engine. Which segments join, and how many at once, is decided by the server's
own scheduler and pacing, so that short requests pass long ones here as they do there; what a turn
takes are the measured times.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.replicas.processors import Process
from benchmarks.replicas.steps import BEAM_SIZE, Sentence, StepTimes
from service.engine.client.pool.choice import Load
from service.engine.worker.pacing import Pacing
from service.engine.worker.scheduler import Scheduler, WaitingSegment
from service.priority import work_of

TOKEN_BUDGET = 1024
"""Source tokens that are encoded between two steps, at most; as the server has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCosts:
    """What an engine takes of its processor.

    Attributes:
        times: Of steps and of encoding.
        segment_seconds: Of a sentence beside both.
        turn_seconds: Of a step beside itself, however many rows it has.
    """

    times: StepTimes
    segment_seconds: float
    turn_seconds: float


@dataclass(slots=True, kw_only=True)
class _Segment:
    sentence: Sentence
    num_left: int
    on_done: Callable[[], None]


@dataclass(slots=True, kw_only=True, eq=False)
class SimulatedEngine:
    """One engine.

    Attributes:
        process: What it runs in.
        costs: What it takes.
        max_rows: Rows that run at once.
        load: What it has, as the front counts it.
        num_steps: So far.
        num_row_steps: Rows of all of them.
    """

    process: Process
    costs: TurnCosts
    max_rows: int
    load: Load = field(default_factory=Load)
    num_steps: int = 0
    num_row_steps: int = 0
    _scheduler: Scheduler = field(init=False)
    _pacing: Pacing = field(default_factory=Pacing)
    _segments: dict[int, _Segment] = field(default_factory=dict)
    _running: dict[int, _Segment] = field(default_factory=dict)
    _num_segments: int = 0

    def __post_init__(self) -> None:
        """The server's scheduler, with as many slots as rows allow."""
        num_slots = self.max_rows // BEAM_SIZE
        self._scheduler = Scheduler(max_rows=self.max_rows, max_slots=2 * num_slots)

    def accept(
        self, sentence: Sentence, *, request: int, request_work: int, on_done: Callable[[], None]
    ) -> None:
        """Queue a sentence of a request; what the engine is at goes on first."""
        number, self._num_segments = self._num_segments, self._num_segments + 1
        self._segments[number] = _Segment(
            sentence=sentence, num_left=sentence.num_steps, on_done=on_done
        )
        self._scheduler.add(
            [
                WaitingSegment(
                    segment_id=number,
                    num_source_tokens=sentence.num_source_tokens,
                    num_rows=BEAM_SIZE,
                    request=request,
                    request_work=request_work,
                )
            ]
        )
        self.load = self.load.with_segment(num_rows=BEAM_SIZE, num_row_steps=_work_of(sentence))
        if not self.process.is_awake:
            self.process.do(0.0, self._turn)

    def _turn(self) -> None:
        """Have what may join do so, and step; what ends is told when the step is over."""
        times = self.costs.times
        joining = self._planned()
        num_rows = len(self._running) * BEAM_SIZE
        if not num_rows:
            return
        encode_seconds = times.encode_seconds * len(joining)
        if joining:
            tokens = max(one.sentence.num_source_tokens for one in joining) * len(joining)
            self._pacing.encoded(tokens, seconds=encode_seconds)
        self._pacing.stepped(seconds=times.step(num_rows))
        self.num_steps += 1
        self.num_row_steps += num_rows
        beside = self.costs.segment_seconds * len(joining) + self.costs.turn_seconds
        self.process.do(encode_seconds + times.step(num_rows) + beside, self._stepped)

    def _planned(self) -> Sequence[_Segment]:
        budget = TOKEN_BUDGET
        if self._running:
            budget = self._pacing.token_budget(ceiling=TOKEN_BUDGET)
        free_rows = self.max_rows - len(self._running) * BEAM_SIZE
        numbers = self._scheduler.plan(
            free_rows=free_rows, free_slots=free_rows // BEAM_SIZE, token_budget=budget
        )
        joining = {number: self._segments.pop(number) for number in numbers}
        self._running.update(joining)
        return list(joining.values())

    def _stepped(self) -> None:
        done = []
        for number, one in self._running.items():
            one.num_left -= 1
            if not one.num_left:
                done.append(number)
        for number in done:
            one = self._running.pop(number)
            self._scheduler.release(number)
            self.load = Load(
                num_rows=self.load.num_rows - BEAM_SIZE,
                num_row_steps=self.load.num_row_steps - _work_of(one.sentence),
            )
            one.on_done()
        self._turn()


def _work_of(sentence: Sentence) -> int:
    """Work of a sentence, as the front counts it."""
    return work_of((sentence.num_source_tokens,), beam_size=BEAM_SIZE)
