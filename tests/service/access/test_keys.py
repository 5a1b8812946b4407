import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import service.access.keys
from model.errors import ConfigError
from service.access.keys import (
    MAX_KEY_LENGTH,
    MAX_KEYS,
    MIN_KEY_LENGTH,
    ApiKey,
    KeyRing,
    check_name,
    load_keys,
    new_key,
    parse_keys,
)

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


def test_a_hash_that_differs_in_one_bit_is_another_keys() -> None:
    key, digest = new_key()
    for bit in range(256):
        other = bytearray(digest)
        other[bit // 8] ^= 1 << bit % 8
        assert KeyRing((ApiKey(name="a", sha256=bytes(other)),)).find(key) is None
    for part in (b"", digest[:16], digest[:-1], digest[1:], digest + b"0"):
        assert KeyRing((ApiKey(name="a", sha256=part),)).find(key) is None
    assert KeyRing((ApiKey(name="a", sha256=digest),)).find(key) is not None


def test_the_first_and_the_last_of_many_keys_are_found_and_an_empty_ring_finds_none() -> None:
    key, digest = new_key()
    strangers = [ApiKey(name=f"k{n}", sha256=sha256(bytes([n])).digest()) for n in range(9)]
    mine = ApiKey(name="mine", sha256=digest)
    for place in (0, 4, 9):
        found = KeyRing((*strangers[:place], mine, *strangers[place:])).find(key)
        assert found is mine
    assert KeyRing(tuple(strangers)).find(key) is None
    assert KeyRing().find(key) is None
    assert KeyRing((mine,)).find(key) is mine


def test_a_key_has_256_random_bits() -> None:
    key, digest = new_key(lambda number: bytes(range(number)))
    assert key == "dragoman_" + bytes(range(32)).hex()
    assert digest == sha256(key.encode()).digest()
    assert len({new_key()[0] for _ in range(100)}) == 100


def test_what_is_too_short_or_too_long_opens_nothing_even_where_its_hash_is_in_the_file() -> None:
    lengths = (
        (MIN_KEY_LENGTH - 1, False),
        (MIN_KEY_LENGTH, True),
        (MAX_KEY_LENGTH, True),
        (MAX_KEY_LENGTH + 1, False),
    )
    for length, is_found in lengths:
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


def test_limits_go_from_one_to_a_thousand_million() -> None:
    for field in ("requests_per_minute", "characters_per_minute"):
        for value in (1, 1_000_000_000):
            (key,) = parse_keys(f'a = {{ sha256 = "{DIGEST}", {field} = {value} }}', "here")
            assert getattr(key, field) == value
        for value in (0, -1, 1_000_000_001):
            with pytest.raises(ConfigError, match=f"{field} must be an integer from 1 to"):
                parse_keys(f'a = {{ sha256 = "{DIGEST}", {field} = {value} }}', "here")


def test_a_file_may_have_as_many_keys_as_its_limit_and_no_more() -> None:
    def lines(number: int) -> str:
        return "".join(f'k{n} = {{ sha256 = "{n:064x}" }}\n' for n in range(number))

    assert len(parse_keys(lines(MAX_KEYS), "here")) == MAX_KEYS
    with pytest.raises(ConfigError, match=f"has {MAX_KEYS + 1} keys; the limit is {MAX_KEYS}"):
        parse_keys(lines(MAX_KEYS + 1), "here")


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a.b", "ä", "a\n"])
def test_a_name_has_one_to_64_plain_characters(name: str) -> None:
    assert check_name("a" * 64) == "a" * 64
    assert check_name("a") == "a"
    with pytest.raises(ConfigError, match=f"this one has {len(name)} characters"):
        check_name(name)


@pytest.mark.parametrize("digits", [63, 65])
def test_a_hash_has_64_digits(digits: int) -> None:
    with pytest.raises(ConfigError, match="64 lower-case hexadecimal digits"):
        parse_keys(f'a = {{ sha256 = "{"a" * digits}" }}', "here")
    with pytest.raises(ConfigError, match="64 lower-case hexadecimal digits"):
        parse_keys(f'a = {{ sha256 = "{"A" * 64}" }}', "here")


def test_only_an_admin_key_opens_the_administration() -> None:
    plain, admin = (
        ApiKey(name=name, sha256=name.encode() * 32, is_admin=name == "b") for name in "ab"
    )
    assert [KeyRing(keys).has_admin for keys in ((), (plain,), (admin,), (plain, admin))] == [
        False,
        False,
        True,
        True,
    ]
    (read,) = parse_keys(f'a = {{ sha256 = "{DIGEST}" }}', "here")
    assert not read.is_admin
    (read,) = parse_keys(f'a = {{ sha256 = "{DIGEST}", admin = false }}', "here")
    assert not read.is_admin


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
    words = f"two keys have the name a: one in DRAGOMAN_API_KEYS, one in {file}$"
    with pytest.raises(ConfigError, match=words):
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


def _line(name: str, digit: str) -> str:
    return f'{name} = {{ sha256 = "{digit * 64}" }}\n'


def test_a_file_of_an_editor_of_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    lines = f"{_line('alice', 'a')}{_line('bob', 'b')}".replace("\n", "\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert [key.name for key in load_keys(file).keys] == ["alice", "bob"]


def test_the_files_of_a_directory_are_read_but_for_what_editors_leave_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "b.toml").write_text(_line("bob", "b"))
    (tmp_path / "a.toml").write_text(_line("alice", "a"))
    for name in ("old.toml~", "old.toml.bak", ".old.toml.swp", ".old.toml", "#old.toml#", "4913"):
        (tmp_path / name).write_text(_line("old", "c"))
    assert [key.name for key in load_keys(None, directory=tmp_path).keys] == ["alice", "bob"]


def test_a_directory_without_a_key_leaves_no_server_open(tmp_path: Path) -> None:
    (tmp_path / "api-keys").write_text(_line("alice", "a"))
    with pytest.raises(ConfigError, match=r"has no key: it has 0 files whose names end in \.toml"):
        load_keys(None, directory=tmp_path)
    (tmp_path / "keys.toml").touch()
    with pytest.raises(ConfigError, match="has no key: it has 1 files"):
        load_keys(None, directory=tmp_path)
    with pytest.raises(ConfigError, match=r"the directory of keys .*/none cannot be read: No such"):
        load_keys(None, directory=tmp_path / "none")


def test_a_name_in_two_files_is_refused_and_so_are_too_many_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, digit in enumerate("ab"):
        (tmp_path / f"{number}.toml").write_text(_line("alice", digit))
    words = f"two keys have the name alice: one in {tmp_path}/0.toml, one in {tmp_path}/1.toml$"
    with pytest.raises(ConfigError, match=words):
        load_keys(None, directory=tmp_path)
    monkeypatch.setattr(service.access.keys, "MAX_KEYS", 1)
    with pytest.raises(ConfigError, match="there are 2 keys; the limit is 1"):
        load_keys(None, directory=tmp_path)


def test_a_file_of_somebody_else_is_told_with_the_mode_and_the_group_it_needs(
    tmp_path: Path,
) -> None:
    """As in a container: files of root with 0600, read by another user."""
    program = (
        "import os, sys; from pathlib import Path; from service.access.keys import load_keys;"
        "from model.errors import ConfigError;"
        "os.setgroups([]); os.setgid(10001); os.setuid(10001)\n"
        "for path, folder in ((sys.argv[1], None), (None, sys.argv[2]), (sys.argv[3], None)):\n"
        "    try: load_keys(path and Path(path), directory=folder and Path(folder))\n"
        "    except ConfigError as error: print(error)\n"
        "    else: print('read')"
    )
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with TemporaryDirectory() as folder:  # where others may enter
        Path(folder).chmod(0o755)
        file, closed = Path(folder, "keys.toml"), Path(folder, "closed")
        file.write_text(_line("alice", "a"))
        file.chmod(0o600)
        closed.mkdir(mode=0o700)
        (closed / "keys.toml").write_text(_line("alice", "a"))

        def tell() -> list[str]:
            done = subprocess.run(
                [sys.executable, "-c", program, file, closed, closed / "keys.toml"],
                capture_output=True,
                text=True,
                check=True,
            )
            return done.stdout.splitlines()

        runs_as = "the server runs as user 10001, group 10001"
        denied = "cannot be read: Permission denied"
        assert tell() == [
            (
                f"the keys file {file} {denied}; its mode is 0600, its owner 0:0, and {runs_as}:"
                " give it that group and the mode 0640"
            ),
            (
                f"the directory of keys {closed} {denied}; its mode is 0700, its owner 0:0, and"
                f" {runs_as}: give it that group and the mode 0750"
            ),
            (
                f"the keys file {closed / 'keys.toml'} {denied}; {runs_as}, which may not enter a"
                " directory above it"
            ),
        ]
        for path, mode in ((file, 0o640), (closed, 0o750), (closed / "keys.toml", 0o640)):
            os.chown(path, -1, 10001)
            path.chmod(mode)
        assert tell() == ["read"] * 3
