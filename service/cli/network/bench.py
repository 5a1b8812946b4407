"""`dragoman bench`: decoding speed of a checkpoint on this machine, by parts.

Owns the flags, the rounds and the table. What runs is the engine's own scheduler and a session;
messages and sockets are left out. Sources are random tokens, so quality is no part of it: what
ends a sentence is the network, or the cap.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from model.config import SearchConfig
from model.system.cores import MAX_THREADS
from service.cli.arguments.directions import single_checkpoint
from service.cli.arguments.offline import (
    MAX_BEAM_SIZE,
    MAX_ROWS,
    add_arithmetic_arguments,
    check_count,
)
from service.cli.signals import leaving_at_once

if TYPE_CHECKING:
    from model.decode.session import DecodeRequest
    from model.loading import Runnable
    from service.engine.worker.scheduler import Scheduler, WaitingSegment

HELP = "measure decoding speed and, with --profile, where the time goes"

_FIRST_PIECE = 3  # after padding, EOS and unknown, wherever they usually stand
_TOKEN_BUDGET = 4096
_MAX_LENGTH = 65_536
_MAX_ROUNDS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, or a folder of several")
    parser.add_argument("--model", metavar="NAME", help="which one of several")
    for flag, default, meaning in (
        ("--sentences", 8, "sentences at once"),
        ("--beam-size", 4, "beams of each"),
        ("--source-length", 25, "source tokens of each, EOS counted"),
        ("--max-length", 33, "target tokens of each, at most, EOS counted"),
        ("--rounds", 5, "timed rounds, after one that is not"),
        ("--threads", 2, "CPU threads"),
    ):
        parser.add_argument(flag, type=int, default=default, help=f"{meaning} (%(default)s)")
    add_arithmetic_arguments(parser)
    parser.add_argument("--profile", action="store_true", help="also print the parts of a step")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print.

    Raises:
        ConfigError: A flag is impossible.
        CheckpointError: The checkpoint cannot be loaded.
        UnsupportedVariantError: int8 is asked for and cannot be had.
        CapacityError: The checkpoint takes no sentences of this length.
    """
    with leaving_at_once():
        from model.loading import load_for_decoding
        from model.system.devices import resolve_device

    for name, limit in (
        ("threads", MAX_THREADS),
        ("sentences", MAX_ROWS),
        ("beam_size", MAX_BEAM_SIZE),
        ("source_length", _MAX_LENGTH),
        ("max_length", _MAX_LENGTH),
        ("rounds", _MAX_ROUNDS),
    ):
        check_count("--" + name.replace("_", "-"), getattr(arguments, name), limit)
    check_count(
        "--sentences times --beam-size", arguments.sentences * arguments.beam_size, MAX_ROWS
    )
    search = SearchConfig(beam_size=arguments.beam_size, max_length=arguments.max_length)
    runnable = load_for_decoding(
        single_checkpoint(arguments.checkpoint, arguments.model),
        device=resolve_device(arguments.device),
        compute_type=arguments.compute_type,
        with_shortlist=arguments.shortlist,
        num_threads=arguments.threads,
    )
    limits = runnable.manifest.limits
    check_count("--source-length", arguments.source_length, limits.max_source_length)
    rounds = Rounds(runnable, arguments, search)
    for _ in range(arguments.rounds + 1):
        rounds.run()
    print(
        f"{runnable.manifest.name}, {_arithmetic(runnable)}, {arguments.threads} threads,"
        f" {arguments.sentences} sentences, beam {arguments.beam_size}:"
        f" {rounds.num_tokens / rounds.seconds:.0f} tokens/s,"
        f" {1e3 * rounds.seconds / arguments.rounds:.1f} ms and"
        f" {rounds.num_steps / arguments.rounds:.0f} steps a round"
    )
    if arguments.profile:
        _print_profile(rounds)
    return 0


def _arithmetic(runnable: "Runnable") -> str:
    """Its type, and the instruction set of its kernels if it has any."""
    return " ".join(filter(None, (runnable.compute_type, runnable.instruction_set)))


class Rounds:
    """Rounds of the same translations, and their sums without the first.

    Attributes:
        seconds: From the first plan of a round to its last hypothesis.
        num_tokens: Target tokens of the best hypotheses, EOS counted.
        num_steps: Decoder steps.
        parts: Seconds of the scheduler, the encoder, the parts of a step, and the rest of it.
        idle_seconds: Within the parts: the calling thread waited for the other threads.
    """

    def __init__(
        self, runnable: "Runnable", arguments: argparse.Namespace, search: SearchConfig
    ) -> None:
        from model.decode.session import DecodingSession, SessionLimits

        self._runnable = runnable
        self._arguments = arguments
        self._search = search
        self._source = random.Random(1)  # noqa: S311  # the same work every time
        self._session = DecodingSession(
            runnable.network,
            tokens=runnable.manifest.tokens,
            limits=SessionLimits(
                max_rows=arguments.sentences * search.beam_size,
                max_slots=arguments.sentences,
                max_source_length=runnable.manifest.limits.max_source_length,
                max_target_length=runnable.manifest.limits.max_target_length + 1,
            ),
            shortlist=runnable.shortlist,
        )
        self._is_warm = False
        self.seconds = 0.0
        self.num_tokens = self.num_steps = 0
        names = ("scheduler", "encoder", *self._session.step_seconds(), "rest of the step")
        self.parts: dict[str, float] = dict.fromkeys(names, 0.0)
        self.idle_seconds = 0.0

    def run(self) -> None:
        """One round; the first leaves no trace in the sums."""
        session = self._session
        requests = [self._request() for _ in range(self._arguments.sentences)]
        scheduler = self._new_scheduler()
        before, idle_before = session.step_seconds(), self._idle()
        laps = {"scheduler": 0.0, "encoder": 0.0, "step": 0.0}
        num_tokens = num_steps = 0
        started = last = time.perf_counter()

        def lap(part: str) -> None:
            nonlocal last
            now = time.perf_counter()
            laps[part] += now - last
            last = now

        scheduler.add(self._waiting(requests))
        while scheduler.num_waiting or not session.is_idle:
            chosen = scheduler.plan(
                free_rows=session.free_rows,
                free_slots=session.free_slots,
                token_budget=_TOKEN_BUDGET,
            )
            lap("scheduler")
            session.admit([requests[index] for index in chosen])
            lap("encoder")
            for sentence in session.step():
                num_tokens += len(sentence.hypotheses[0].token_log_probs)
            num_steps += 1
            lap("step")
        if not self._is_warm:
            self._is_warm = True
            return
        self.seconds += last - started
        self.num_tokens += num_tokens
        self.num_steps += num_steps
        self.idle_seconds += self._idle() - idle_before
        for part, total in session.step_seconds().items():
            self.parts[part] += total - before[part]
            laps["step"] -= total - before[part]
        self.parts["scheduler"] += laps["scheduler"]
        self.parts["encoder"] += laps["encoder"]
        self.parts["rest of the step"] += laps["step"]

    def _new_scheduler(self) -> "Scheduler":
        from service.engine.worker.scheduler import Scheduler

        return Scheduler(
            max_rows=self._arguments.sentences * self._search.beam_size,
            max_slots=self._arguments.sentences,
            reserved_share=0.0,
        )

    def _waiting(self, requests: Sequence["DecodeRequest"]) -> Iterator["WaitingSegment"]:
        from service.engine.worker.scheduler import WaitingSegment

        for index, request in enumerate(requests):
            yield WaitingSegment(
                segment_id=index,
                num_source_tokens=len(request.source_ids),
                num_rows=self._search.beam_size,
                priority="interactive",
            )

    def _request(self) -> "DecodeRequest":
        from model.decode.session import DecodeRequest

        tokens = self._runnable.manifest.tokens
        size = self._runnable.manifest.network.vocab_size
        words = [
            self._source.randrange(min(_FIRST_PIECE, size - 1), size)
            for _ in range(self._arguments.source_length - 1)
        ]
        return DecodeRequest(
            source_ids=(*words, tokens.eos_id),
            prefix_ids=(tokens.start_id,),
            search=self._search,
        )

    def _idle(self) -> float:
        from model.native.network import Int8Network

        network = self._runnable.network
        return network.team.waited_seconds if isinstance(network, Int8Network) else 0.0


def _print_profile(rounds: Rounds) -> None:
    """A line a part: milliseconds a step, and the share of all."""
    print(f"{'part':<18}{'ms a step':>10}{'share':>8}")
    for part, seconds in rounds.parts.items():
        milliseconds = 1e3 * seconds / rounds.num_steps
        print(f"{part.replace('_', ' '):<18}{milliseconds:>10.3f}{seconds / rounds.seconds:>8.1%}")
    milliseconds = 1e3 * rounds.idle_seconds / rounds.num_steps
    print(f"of these, idle: {milliseconds:.3f} ms a step of waiting for other threads")
