"""Settings of a front: those of its owner, flags and secrets included."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.access.keys import ApiKey, KeyRing
from service.engine.messages import encode_frame
from service.fronts.messages import owner_messages
from service.fronts.settings_message import begin_with, settings_of
from service.settings import Settings


def test_settings_arrive_as_they_were() -> None:
    settings = Settings(
        fronts=3,
        checkpoint=Path("elsewhere"),
        trusted_proxies="10.0.0.0/8, ::1",  # type: ignore[arg-type]  # as an operator writes it
        api_keys='ann = "…"',  # type: ignore[arg-type]
        redis_url="redis://user:word@host",  # type: ignore[arg-type]
        cors_origins="https://example.org",  # type: ignore[arg-type]
        preferred="a, b",  # type: ignore[arg-type]
        segment_cache="64M",  # type: ignore[arg-type]
    )
    keys = KeyRing((ApiKey(name="ann", sha256=bytes(range(32)), is_admin=True),))
    frame = encode_frame(begin_with(settings, max_connections=250, keys=keys))
    [begin] = owner_messages().feed(frame)
    assert settings_of(begin) == settings  # type: ignore[arg-type]  # it is the only one
    assert begin.max_connections == 250  # type: ignore[union-attr]
    assert begin.keys == keys  # type: ignore[union-attr]


def test_several_fronts_and_checkpoints_on_demand_are_refused_together() -> None:
    with pytest.raises(
        ValidationError, match="DRAGOMAN_FRONTS is 2 and DRAGOMAN_MEMORY_BUDGET is set"
    ):
        Settings(fronts=2, memory_budget=2**30)
    assert Settings(fronts=1, memory_budget=2**30).fronts == 1
