import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import ConfigError
from service.keys import MIN_KEY_LENGTH, ApiKey, KeyRing, load_keys, new_key, parse_keys

DIGEST = "ab" * 32


def _ring(*pairs: tuple[str, str]) -> KeyRing:
    return KeyRing(
        tuple(ApiKey(name=name, sha256=sha256(key.encode()).digest()) for name, key in pairs)
    )


def test_a_key_is_found_by_its_hash_and_nothing_else_is() -> None:
    keys = [new_key()[0] for _ in range(3)]
    ring = _ring(*zip("abc", keys, strict=True))
    assert [found.name for key in keys if (found := ring.find(key))] == ["a", "b", "c"]
    for wrong in ("", keys[0][:-1], keys[0] + "0", keys[0].upper(), ring.keys[0].sha256.hex()):
        assert ring.find(wrong) is None


def test_a_key_has_256_random_bits() -> None:
    key, digest = new_key(lambda number: bytes(range(number)))
    assert key == "dragoman_" + bytes(range(32)).hex()
    assert digest == sha256(key.encode()).digest()
    assert len({new_key()[0] for _ in range(100)}) == 100


def test_a_short_password_opens_nothing_even_where_its_hash_is_in_the_file() -> None:
    for length, is_found in ((MIN_KEY_LENGTH - 1, False), (MIN_KEY_LENGTH, True)):
        password = "x" * length
        assert (_ring(("a", password)).find(password) is not None) == is_found


@given(st.text(max_size=300))
def test_whatever_is_presented_is_answered(presented: str) -> None:
    assert _ring(("a", "k" * 40)).find(presented) is None


def test_no_hash_is_in_a_representation() -> None:
    ring = _ring(("alice", "k" * 40))
    for shown in (repr(ring), str(ring.keys[0])):
        assert "alice" in shown
        assert ring.keys[0].sha256.hex() not in shown
        assert repr(ring.keys[0].sha256) not in shown


def test_a_line_is_read_as_it_was_written() -> None:
    for key in (
        ApiKey(name="a", sha256=bytes(32)),
        ApiKey(name="b-1_c", sha256=bytes(32), requests_per_minute=3, is_admin=True),
        ApiKey(name="D", sha256=bytes(32), characters_per_minute=1_000_000_000),
    ):
        assert parse_keys(key.line(), "here") == (key,)


def test_a_file_and_the_environment_are_one_ring(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'[in_file]\nsha256 = "{DIGEST}"\nadmin = true\n')
    ring = load_keys(file, f'inline = {{ sha256 = "{"cd" * 32}" }}')
    assert [key.name for key in ring.keys] == ["inline", "in_file"]
    assert ring.has_admin
    assert not load_keys(None, "").keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("secret-that-was-pasted\n", "line 1"),
        ("a = secret-that-was-pasted", "not valid TOML"),
        ('a = "secret-that-was-pasted"', "must be a table"),
        ('a = { sha256 = "secret-that-was-pasted" }', "64 lower-case"),
        ("a = { }", "64 lower-case"),
        (f'"secret that was pasted" = {{ sha256 = "{DIGEST}" }}', "key 1: its name"),
        (f'a = {{ sha256 = "{DIGEST}", key = "secret-that-was-pasted" }}', "unknown"),
        (f'a = {{ sha256 = "{DIGEST}", admin = "secret-that-was-pasted" }}', "admin must be"),
        (f'a = {{ sha256 = "{DIGEST}", requests_per_minute = 0 }}', "from 1 to"),
        (f'a = {{ sha256 = "{DIGEST}", requests_per_minute = true }}', "from 1 to"),
        (f'a = {{ sha256 = "{DIGEST}", characters_per_minute = 1.5 }}', "from 1 to"),
        (f'a = {{ sha256 = "{DIGEST}" }}\nb = {{ sha256 = "{DIGEST}" }}', "the same key"),
        ("", "has no key"),
    ],
)
def test_what_is_no_keys_file_is_said_without_quoting_it(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_keys(file)
    assert "was-pasted" not in str(caught.value)
    assert "was pasted" not in str(caught.value)


def test_a_variable_without_a_key_is_refused_unless_it_is_empty() -> None:
    with pytest.raises(ConfigError, match="DRAGOMAN_API_KEYS has no key"):
        load_keys(None, "# none yet\n")
    assert not load_keys(None, "")


def test_a_name_in_both_places_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'a = {{ sha256 = "{DIGEST}" }}')
    with pytest.raises(ConfigError, match="two keys have the name a"):
        load_keys(file, f'a = {{ sha256 = "{"cd" * 32}" }}')


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        load_keys(tmp_path / "none.toml")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="bytes cannot be read: not UTF-8"):
        load_keys(tmp_path / "bytes")


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "9" * 5000])
def test_values_without_end_are_no_keys_file(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^the file is not valid TOML$"):
        parse_keys(f"a = {value}", "the file")


def test_a_keys_file_that_is_none_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match=f"the keys file {path} is no file"):
            load_keys(path)
