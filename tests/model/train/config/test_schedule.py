import math

import pytest

from model.errors import ConfigError
from model.train.config.schedule import ScheduleConfig, learning_rate, tail_factor


def test_noam_is_the_formula_of_the_paper() -> None:
    config = ScheduleConfig(kind="noam", warmup_updates=4000)
    for update in (1, 10, 3999, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        assert math.isclose(learning_rate(config, update=update, d_model=512), expected)


def test_noam_factor_multiplies_the_rate() -> None:
    once = learning_rate(ScheduleConfig(kind="noam"), update=7, d_model=64)
    twice = learning_rate(ScheduleConfig(kind="noam", factor=2.0), update=7, d_model=64)
    assert math.isclose(twice, 2 * once)


def test_inverse_sqrt_rises_to_its_peak_and_falls_with_the_root() -> None:
    config = ScheduleConfig(kind="inverse-sqrt", peak=1e-3, warmup_updates=100)
    rates = {n: learning_rate(config, update=n, d_model=8) for n in (1, 50, 100, 400)}
    assert rates[1] == pytest.approx(1e-5)
    assert rates[50] == pytest.approx(5e-4)
    assert rates[100] == pytest.approx(1e-3)
    assert rates[400] == pytest.approx(5e-4)


def test_constant_stays_at_its_peak_after_the_warm_up() -> None:
    config = ScheduleConfig(kind="constant", peak=2e-3, warmup_updates=10)
    assert learning_rate(config, update=5, d_model=8) == pytest.approx(1e-3)
    assert learning_rate(config, update=5000, d_model=8) == pytest.approx(2e-3)


def test_cosine_falls_from_its_peak_to_its_floor_as_half_a_cosine() -> None:
    config = ScheduleConfig(kind="cosine", peak=3e-3, floor=1e-3, warmup_updates=10)
    rates = [
        learning_rate(config, update=update, fraction=fraction, d_model=8)
        for update, fraction in ((5, 0.0), (10, 0.0), (500, 1 / 3), (750, 0.5), (1500, 1.0))
    ]
    assert rates == pytest.approx([1.5e-3, 3e-3, 2.5e-3, 2e-3, 1e-3])


def test_the_tail_begins_late_and_ends_at_zero() -> None:
    assert tail_factor(0.4, 0.0) == 1.0
    assert tail_factor(0.4, 0.6) == 1.0
    assert tail_factor(0.4, 0.8) == pytest.approx(0.5)
    assert tail_factor(0.4, 1.0) == 0.0
    assert tail_factor(0.0, 1.0) == 1.0


def test_the_tail_multiplies_every_kind() -> None:
    for kind in ("noam", "inverse-sqrt", "cosine", "constant"):
        plain = ScheduleConfig(kind=kind)
        tailed = ScheduleConfig(kind=kind, tail_fraction=0.5)
        rate = learning_rate(plain, update=9000, fraction=0.75, d_model=32)
        tail = learning_rate(tailed, update=9000, fraction=0.75, d_model=32)
        assert tail == pytest.approx(rate / 2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kind": "linear"}, "must be one of noam, inverse-sqrt, cosine, constant"),
        ({"peak": 1e-3, "floor": 2e-3}, r"schedule.floor is 0.002; it must be from 0 to .*0.001"),
        ({"floor": -1.0}, "schedule.floor is -1.0"),
        ({"peak": 0.0}, "schedule.peak is 0.0"),
        ({"peak": math.inf}, "schedule.peak is inf; it must be above 0, and finite"),
        ({"peak": math.nan}, "schedule.peak is nan"),
        ({"factor": math.nan}, "schedule.factor is nan"),
        ({"warmup_updates": 0}, "schedule.warmup_updates is 0"),
        ({"tail_fraction": 1.5}, "schedule.tail_fraction is 1.5"),
    ],
)
def test_impossible_schedules_are_refused_by_name(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ScheduleConfig(**changes)  # type: ignore[arg-type]


def test_the_ends_of_every_range_are_allowed() -> None:
    ScheduleConfig(peak=1e-3, floor=1e-3, warmup_updates=1, tail_fraction=1.0)
    ScheduleConfig(floor=0.0, tail_fraction=0.0)
    for tail_fraction in (-0.1, math.nan):
        with pytest.raises(ConfigError, match=r"schedule\.tail_fraction is"):
            ScheduleConfig(tail_fraction=tail_fraction)
    with pytest.raises(ConfigError, match=r"schedule\.factor is 0\.0"):
        ScheduleConfig(factor=0.0)


def test_as_it_stands_it_is_the_inverse_root_after_four_thousand_updates() -> None:
    rates = [learning_rate(ScheduleConfig(), update=n, d_model=8) for n in (1, 4000, 16000)]
    assert rates == pytest.approx([1e-3 / 4000, 1e-3, 5e-4])
    assert learning_rate(ScheduleConfig(), update=16000, fraction=1.0, d_model=8) > 0.0


def test_a_warm_up_of_one_update_is_none() -> None:
    for kind in ("inverse-sqrt", "constant", "cosine"):
        config = ScheduleConfig(kind=kind, peak=2e-3, warmup_updates=1)
        assert learning_rate(config, update=1, d_model=8) == pytest.approx(2e-3)


def test_a_tail_never_goes_below_zero_or_above_one() -> None:
    assert tail_factor(0.5, 1.5) == 0.0
    assert tail_factor(1.0, 0.0) == tail_factor(0.1, 0.0) == 1.0
    assert tail_factor(1.0, 0.25) == pytest.approx(0.75)
