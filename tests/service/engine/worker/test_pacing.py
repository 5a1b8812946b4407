import subprocess
import sys

import pytest

from service.engine.worker.pacing import MIN_TOKEN_BUDGET, Pacing

CEILING = 1024


def test_nothing_measured_is_no_reason_to_hold_back():
    pacing = Pacing()
    assert pacing.token_budget(ceiling=CEILING) == CEILING
    pacing.stepped(seconds=0.02)
    assert pacing.token_budget(ceiling=CEILING) == CEILING


def test_encoding_alone_is_no_reason_either():
    pacing = Pacing()
    pacing.encoded(100, seconds=1.0)
    assert pacing.token_budget(ceiling=CEILING) == CEILING


def test_the_budget_is_what_is_encoded_in_the_time_of_so_many_steps():
    pacing = Pacing(pause_steps=3.0)
    pacing.encoded(1000, seconds=0.5)
    pacing.stepped(seconds=0.05)
    assert pacing.token_budget(ceiling=CEILING) == 300


def test_the_budget_has_a_ceiling_and_a_floor():
    fast, slow = Pacing(), Pacing()
    fast.encoded(10_000, seconds=0.001)
    slow.encoded(10, seconds=10.0)
    for pacing in (fast, slow):
        pacing.stepped(seconds=0.02)
    assert fast.token_budget(ceiling=CEILING) == CEILING
    assert slow.token_budget(ceiling=CEILING) == MIN_TOKEN_BUDGET
    assert slow.token_budget(ceiling=8) == 8


def test_a_clock_that_stands_still_divides_by_nothing():
    pacing = Pacing()
    pacing.encoded(100, seconds=0.0)
    pacing.stepped(seconds=0.0)
    assert pacing.token_budget(ceiling=CEILING) == CEILING


def test_one_slow_step_moves_the_budget_by_its_weight_only():
    pacing = Pacing(pause_steps=1.0, weight=0.1)
    pacing.encoded(1000, seconds=1.0)
    for _ in range(50):
        pacing.stepped(seconds=0.1)
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(100, abs=1)
    pacing.stepped(seconds=0.6)
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(150, abs=1)


def test_old_measurements_are_forgotten():
    pacing = Pacing(pause_steps=1.0)
    pacing.stepped(seconds=0.1)
    pacing.encoded(1000, seconds=1.0)
    for _ in range(100):
        pacing.encoded(1000, seconds=4.0)
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(25 + 39, abs=1)  # the floor
    for _ in range(100):
        pacing.encoded(1000, seconds=0.5)
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(200, abs=1)


def test_large_batches_say_more_than_small_ones():
    # Small batches are mostly overhead: by themselves they would allow 100 tokens.
    pacing = Pacing(pause_steps=1.0)
    pacing.stepped(seconds=0.1)
    for _ in range(100):
        pacing.encoded(10, seconds=0.01)
        pacing.encoded(990, seconds=0.4)
    assert pacing.token_budget(ceiling=CEILING) > 200


@pytest.mark.parametrize("first", [32, 4096])
def test_full_batches_with_a_fixed_cost_settle_where_they_take_just_the_pause(first):
    pacing = Pacing(pause_steps=2.0)
    pacing.stepped(seconds=0.02)
    num_tokens = first
    for _ in range(200):
        seconds = 0.01 + 0.0001 * num_tokens
        pacing.encoded(num_tokens, seconds=seconds)
        num_tokens = pacing.token_budget(ceiling=4096)
    assert 0.01 + 0.0001 * num_tokens == pytest.approx(2.0 * 0.02, rel=0.02)


def test_it_is_imported_without_torch_and_event_loop():
    code = (
        "import sys, service.engine.worker.pacing as _;"
        "sys.exit(bool({'torch', 'asyncio'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_by_default_encoding_may_take_two_steps_and_a_measurement_counts_a_tenth():
    pacing = Pacing()
    pacing.encoded(1000, seconds=1.0)
    pacing.stepped(seconds=0.1)
    assert pacing.token_budget(ceiling=CEILING) == 200
    pacing.stepped(seconds=0.6)
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(300, abs=1)
    pacing.encoded(1000, seconds=11.0)  # a tenth of it, so twice as long as before
    assert pacing.token_budget(ceiling=CEILING) == pytest.approx(150, abs=1)


def test_the_floor_is_a_few_sentences():
    pacing = Pacing()
    pacing.encoded(1, seconds=1000.0)
    pacing.stepped(seconds=0.001)
    assert pacing.token_budget(ceiling=CEILING) == 64


def test_where_work_is_only_launched_the_budget_is_the_ceiling():
    """Two milliseconds to launch a batch, and a fifth of one to launch a step, say nothing."""
    pacing = Pacing(is_launched=True)
    pacing.encoded(32, seconds=0.002)
    pacing.stepped(seconds=0.0002)
    assert pacing.token_budget(ceiling=16_384) == 16_384
