"""What two workers must have in common, to the bit."""

from functools import partial
from unittest.mock import patch

import pytest
import torch

from model.errors import TrainingError
from model.train import agreement
from model.train.agreement import require_same_run, require_same_state
from model.train.config.optimiser import OptimiserConfig
from model.train.data.batching import BatchPosition
from model.train.loop.distributed import Group
from model.train.loop.trainer import build_optimiser
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress
from support.forked import Send, run_workers
from support.tiny_runs import CPU, EXPERIMENT
from support.training import network


def compare_states(send: Send, group: Group, *, changed: str) -> None:
    """The second worker's state is another in one place; says the errors."""
    transformer = network()
    optimiser = build_optimiser(transformer, OptimiserConfig())
    average = MovingAverage(transformer, decay=0.9)
    for parameter in transformer.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    progress = Progress(update=1)
    if not group.is_first:
        with torch.no_grad():
            if changed == "weights":
                transformer.get_parameter("output_bias")[0] += 1e-3
            elif changed == "moments":
                next(iter(optimiser.state.values()))["exp_avg"].flatten()[0] += 1e-3
            elif changed == "average":
                average.state().weights["output_bias"][0] += 1e-3
            elif changed == "position":
                progress = Progress(update=1, position=BatchPosition(epoch=0, index=1))
    try:
        require_same_state(
            group, progress, transformer=transformer, optimiser=optimiser, average=average
        )
        send("")
    except TrainingError as error:
        send(str(error))


@pytest.mark.parametrize("changed", ["nothing", "weights", "moments", "average", "position"])
def test_states_are_compared_to_the_bit(changed: str) -> None:
    sent, exits = run_workers(partial(compare_states, changed=changed), size=2)
    assert exits == [0, 0]
    (first, _), (second, _) = sent
    assert first == second
    assert (f"the state's {changed} is " in first) == (changed != "nothing")


def compare_versions(send: Send, group: Group, *, versions: tuple[str, str]) -> None:
    """Each worker has a version of torch."""
    found = {"torch": versions[group.rank]}
    with patch.object(agreement, "package_versions", lambda: found):
        try:
            require_same_run(group, CPU, EXPERIMENT, resume=False)
            send("")
        except TrainingError as error:
            send(str(error))


@pytest.mark.parametrize(
    ("versions", "is_refused"), [(("2.1", "2.2"), True), (("2.1+cpu", "2.1"), False)]
)
def test_workers_of_two_versions_are_refused_but_not_of_two_builds(
    versions: tuple[str, str], *, is_refused: bool
) -> None:
    sent, _ = run_workers(partial(compare_versions, versions=versions), size=2)
    words = "the version of torch is 2.2 there, and 2.1 here"
    assert [words in said for said, _ in sent] == [is_refused] * 2


def test_a_single_worker_agrees_with_itself() -> None:
    require_same_run(Group(), CPU, EXPERIMENT, resume=False)
