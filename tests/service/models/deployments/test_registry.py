"""Which deployment serves what, without engines; test_rollout_faults.py has real ones."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from model.config import LengthLimits
from model.text.languages.tags import LanguagePair
from service.models.checkpoints.discovery import FaultyCheckpoint
from service.models.deployments.deployment import Deployment
from service.models.deployments.registry import Routes
from service.models.routes.routing import Offer
from support.tiny_checkpoint import EN_ZH, ZH_EN

EN_DE = LanguagePair(source="en", target="de")


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What routes see of a deployment."""

    checkpoints: tuple[SimpleNamespace, ...]
    faulty: tuple[FaultyCheckpoint, ...] = ()
    unloaded: tuple[SimpleNamespace, ...] = ()
    on_demand: tuple[SimpleNamespace, ...] = ()
    left_out: frozenset[str] = frozenset()
    pool: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(is_ready=True))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.manifest.name for one in self.checkpoints)


def _checkpoint(directory: str, name: str, *pairs: LanguagePair) -> SimpleNamespace:
    return SimpleNamespace(
        directory=Path("/old", directory),
        manifest=SimpleNamespace(name=name, pairs=pairs, limits=LIMITS),
        offer=Offer(name=name, pairs=pairs),
        entry=SimpleNamespace(name=name),
    )


def _deployment(
    *checkpoints: SimpleNamespace, faulty: tuple[str, ...] = (), is_ready: bool = True
) -> Deployment:
    faults = tuple(
        FaultyCheckpoint(directory=Path("/new", name), reason=f"/new/{name}/config.json: is gone")
        for name in faulty
    )
    return cast("Deployment", Loaded(checkpoints, faults, pool=SimpleNamespace(is_ready=is_ready)))


LIMITS = LengthLimits(max_source_length=8, max_target_length=8)
BACK = _checkpoint("b", "back", ZH_EN)
THERE = _checkpoint("a", "there", EN_ZH)


def test_a_checkpoint_that_is_faulty_now_keeps_the_deployment_that_has_it() -> None:
    routes, old = Routes(), _deployment(THERE, BACK)
    assert routes.take(old) == []
    new = _deployment(THERE, faulty=("b",))
    assert routes.take(new) == []
    assert (routes.find("there"), routes.find("back")) == (new, old)
    assert routes.deployments == [old, new]
    [fault] = routes.faults
    assert (fault.directory, fault.reason, fault.is_served) == (
        "b",
        "b/config.json: is gone",
        True,
    )
    newer = _deployment(THERE, faulty=("b",))
    assert routes.take(newer) == [new]
    assert (routes.find("there"), routes.find("back")) == (newer, old)
    assert routes.take(_deployment(THERE, BACK)) == [old, newer]
    assert routes.faults == []


def test_faulty_ones_of_two_deployments_keep_both() -> None:
    german = _checkpoint("c", "german", EN_DE)
    routes, first = Routes(), _deployment(THERE, BACK, german)
    routes.take(first)
    second = _deployment(THERE, german, faulty=("b",))
    routes.take(second)
    third = _deployment(german, faulty=("a", "b"))
    assert routes.take(third) == []
    assert [routes.find(name) for name in ("there", "back", "german")] == [second, first, third]
    assert routes.by_directory == {"a": False, "b": False, "c": True}


def test_a_checkpoint_that_was_taken_away_is_gone() -> None:
    routes, old = Routes(), _deployment(THERE, BACK)
    routes.take(old)
    assert routes.take(_deployment(THERE)) == [old]
    assert routes.find("back") is None
    assert routes.table.names == ("there",)


def test_a_name_that_a_new_checkpoint_has_taken_is_not_kept() -> None:
    routes, old = Routes(), _deployment(BACK)
    routes.take(old)
    new = _deployment(_checkpoint("c", "back", EN_DE), faulty=("b",))
    assert routes.take(new) == [old]
    assert routes.table.all.hop("zh-Hans", "en") is None
    assert not routes.faults[0].is_served


def test_languages_that_a_new_checkpoint_has_too_are_kept() -> None:
    routes, old = Routes(), _deployment(BACK)
    routes.take(old)
    new = _deployment(_checkpoint("c", "other", ZH_EN), faulty=("b",))
    assert routes.take(new) == []
    assert [hop.checkpoint for hop in routes.table.all.hops("zh-Hans", "en")] == ["back", "other"]


def test_preference_and_pivot_outlive_a_deployment() -> None:
    routes = Routes(preferred=("other",), pivot="en")
    routes.take(_deployment(BACK))
    routes.take(_deployment(BACK, _checkpoint("c", "other", ZH_EN), THERE))
    hop = routes.table.all.hop("zh-Hans", "en")
    assert hop is not None
    assert (hop.checkpoint, routes.table.pivot) == ("other", "en")


def test_an_engine_that_is_gone_keeps_nothing() -> None:
    routes, old = Routes(), _deployment(THERE, BACK, is_ready=False)
    routes.take(old)
    assert routes.take(_deployment(THERE, faulty=("b",))) == [old]
    assert routes.find("back") is None


def test_a_last_good_version_that_is_removed_is_not_there_any_more() -> None:
    routes, old = Routes(), _deployment(THERE, BACK)
    routes.take(old)
    routes.take(_deployment(THERE, faulty=("b",)))
    routes.remove(old)
    assert (routes.find("back"), routes.limits("back")) == (None, None)
    assert routes.table.names == ("there",)
    assert [entry.name for entry in routes.entries] == ["there"]
    assert not routes.faults[0].is_served


def test_what_was_loaded_on_demand_stays_so_when_it_is_faulty_and_removed_can_be_loaded_again() -> (
    None
):
    routes, alone = Routes(), _deployment(BACK)
    latest = Loaded((THERE,), on_demand=(BACK,))
    routes.take(cast("Deployment", latest))
    routes.add("back", alone)
    routes.remove(alone)
    assert (routes.loadable("back"), routes.loaded_on_demand) == (BACK, {})
    assert routes.table.names == ("there", "back")
    routes.add("back", alone)
    routes.take(_deployment(THERE, faulty=("b",)))
    assert (routes.loaded_on_demand, routes.find("back")) == ({"back": alone}, alone)
    routes.remove(alone)
    assert (routes.loadable("back"), routes.loaded_on_demand) == (None, {})
    assert routes.table.names == ("there",)


def test_a_name_that_a_new_checkpoint_on_demand_has_taken_is_not_kept() -> None:
    routes, old = Routes(), _deployment(THERE, BACK)
    routes.take(old)
    other = _checkpoint("c", "back", EN_DE)
    fault = FaultyCheckpoint(directory=Path("/new", "b"), reason="is gone")
    routes.take(cast("Deployment", Loaded((THERE,), (fault,), on_demand=(other,))))
    assert (routes.find("back"), routes.loadable("back")) == (None, other)


def test_a_checkpoint_that_is_left_out_is_not_kept_and_is_told_of() -> None:
    routes, old = Routes(), _deployment(THERE, BACK)
    routes.take(old)
    new = cast("Deployment", Loaded((THERE,), unloaded=(BACK,), left_out=frozenset({"back"})))
    assert routes.take(new) == [old]
    assert routes.find("back") is None
    assert [entry.name for entry in routes.entries] == ["there", "back"]
    again = Loaded(
        (THERE,),
        (FaultyCheckpoint(directory=Path("/new", "b"), reason="is gone"),),
        left_out=frozenset({"back"}),
    )
    assert routes.take(cast("Deployment", again)) == [new]
    assert routes.table.names == ("there",)
