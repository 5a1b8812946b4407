"""Licences that want a word."""

from pathlib import Path

import pytest

from model.errors import ConfigError
from model.exchange.registry.licences import (
    accepted_licences,
    check_accepted,
    is_restricted,
)

NC = "cc-by-nc-4.0"


@pytest.mark.parametrize(
    "licence", [NC, "CC-BY-NC-SA-4.0", "non-commercial", "noncommercial use", "research only"]
)
def test_licences_that_forbid_common_uses_are_restricted(licence: str) -> None:
    assert is_restricted(licence)


@pytest.mark.parametrize(
    "licence", [None, "cc-by-4.0", "MPL-2.0", "apache-2.0", "MIT", "CC0-1.0", "ncsa", "other"]
)
def test_others_are_not(licence: str | None) -> None:
    assert not is_restricted(licence)


def test_a_licence_is_accepted_once(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "accepted.json"
    with pytest.raises(ConfigError, match=r"--accept-licence cc-by-nc-4\.0"):
        check_accepted(NC, path, accepting=None)
    check_accepted(NC, path, accepting="CC-BY-NC-4.0")
    check_accepted(NC, path, accepting=None)
    check_accepted("CC-BY-NC-4.0", path, accepting=None)
    assert accepted_licences(path) == {NC}
    with pytest.raises(ConfigError):
        check_accepted("cc-by-nc-sa-4.0", path, accepting=None)


@pytest.mark.parametrize("licence", ["MIT", None])
def test_another_licence_than_the_weights_have_is_not_accepted(
    tmp_path: Path, licence: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"not CC-BY-NC-4\.0"):
        check_accepted(licence, tmp_path / "a", accepting="CC-BY-NC-4.0")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff"])
def test_a_damaged_file_accepts_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert accepted_licences(tmp_path / "a") == frozenset()
