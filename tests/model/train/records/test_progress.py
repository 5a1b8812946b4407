import io
import json
import logging
import math
from dataclasses import replace

import pytest

from model.train.config.run import RunConfig
from model.train.loop.trainer import UpdateResult
from model.train.records.progress import ProgressReporter
from model.train.records.time_left import TimeLeft
from model.train.saved.state import Progress
from support.logged import events_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def result(
    update: int, *, loss: float, norm: float, num_tokens: int, epoch: int = 0
) -> UpdateResult:
    return UpdateResult(
        update=update,
        epoch=epoch,
        loss=loss,
        gradient_norm=norm,
        learning_rate=1e-3 * update,
        num_source_tokens=100,
        num_target_tokens=num_tokens,
    )


def reporter_of(
    stream: io.StringIO, begin: Progress, *, fraction: float = 0.0, evaluate_every: int = 8
) -> ProgressReporter:
    run = RunConfig(max_updates=100, snapshot_every_updates=evaluate_every)
    time_left = TimeLeft(run, progress=begin, fraction=fraction, clock=lambda: 0.0)
    return ProgressReporter(stream=stream, progress=begin, fraction=fraction, time_left=time_left)


def run(reporter: ProgressReporter, results: list[UpdateResult], begin: Progress) -> Progress:
    """Ten seconds an update, a hundredth of the run each."""
    progress = begin
    for item in results:
        progress = replace(
            progress,
            update=item.update,
            elapsed_seconds=progress.elapsed_seconds + 10.0,
            num_source_tokens=progress.num_source_tokens + item.num_source_tokens,
            num_target_tokens=progress.num_target_tokens + item.num_target_tokens,
        )
        reporter.add(item, progress, fraction=item.update / 100)
    return progress


RESULTS = [
    result(1, loss=4.0, norm=1.0, num_tokens=300),
    result(2, loss=2.0, norm=5.0, num_tokens=100),
    result(3, loss=float("nan"), norm=float("inf"), num_tokens=100),
]


def test_a_report_has_means_speeds_and_times_left(caplog: pytest.LogCaptureFixture) -> None:
    begin = Progress()
    stream = io.StringIO()
    with (
        caplog.at_level(logging.INFO),
        reporter_of(stream, begin) as reporter,
    ):
        progress = run(reporter, RESULTS, begin)
        fields = reporter.report(progress, fraction=0.03)
    assert fields == {
        "epoch": 1,
        "loss": pytest.approx(3.5),  # of target tokens, what is not finite left out
        "learning_rate": pytest.approx(3e-3),
        "gradient_norm": pytest.approx(3.0),
        "max_gradient_norm": 5.0,
        "tokens_per_second": 26.7,  # 800 tokens in 30 seconds
        "num_source_tokens": 300,
        "num_target_tokens": 500,
        "num_skipped_updates": 0,
        "elapsed_seconds": 30.0,
        "seconds_left": 970,
        "next_evaluation_seconds": 50,
    }
    assert stream.getvalue() == ""
    assert events_of(caplog) == [("progress", {"update": 3, **fields})]


def test_a_second_report_is_about_what_came_since(caplog: pytest.LogCaptureFixture) -> None:
    begin = Progress(update=40, elapsed_seconds=400.0)
    with reporter_of(io.StringIO(), begin, fraction=0.4, evaluate_every=50) as reporter:
        progress = run(reporter, [result(41, loss=9.0, norm=1.0, num_tokens=100)], begin)
        reporter.report(progress, fraction=0.41)
        later = result(42, loss=1.0, norm=2.0, num_tokens=300, epoch=7)
        progress = run(reporter, [later], progress)
        fields = reporter.report(progress, fraction=0.42)
    assert fields["epoch"] == 8  # that of the update, not of what comes next
    assert fields["loss"] == 1.0
    assert fields["gradient_norm"] == 2.0
    assert fields["tokens_per_second"] == 40.0
    assert fields["seconds_left"] == 580
    assert fields["next_evaluation_seconds"] == 80


def test_a_terminal_gets_a_bar_and_lines_above_it_and_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begin = Progress()
    stream = Terminal()
    with (
        caplog.at_level(logging.INFO),
        reporter_of(stream, begin) as reporter,
    ):
        reporter.report(run(reporter, RESULTS[:1], begin), fraction=0.01)
        reporter.say("dev/talk: loss 1.0", event="evaluation", fields={})
    shown = stream.getvalue()
    assert "  0.0%|" in shown
    figures = "update 1 loss 4.000 40 tokens/s left 0:16:30 evaluation in 0:01:10"
    assert f"| {figures}" in shown.rpartition("  1.0%|")[2]
    assert "dev/talk: loss 1.0\n" in shown
    assert not caplog.records


def test_skipped_updates_are_counted() -> None:
    with reporter_of(io.StringIO(), Progress()) as reporter:
        fields = [
            reporter.report(Progress(update=9, num_skipped_updates=number), fraction=0.5)
            for number in (0, 2)
        ]
    assert [item["num_skipped_updates"] for item in fields] == [0, 2]


def test_fields_of_a_line_hold_only_what_json_can_say(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with reporter_of(io.StringIO(), Progress()) as reporter:
        run(reporter, RESULTS[2:], Progress())
        reporter.report(Progress(update=3), fraction=0.03)
        reporter.say("dev", event="evaluation", fields={"perplexity": math.inf, "bleu": 1.5})
    [(_, progress), (event, evaluation)] = events_of(caplog)
    assert event == "evaluation"
    assert progress["loss"] is None
    assert progress["gradient_norm"] is None
    assert evaluation == {"perplexity": None, "bleu": 1.5}
    json.dumps(progress, allow_nan=False)
