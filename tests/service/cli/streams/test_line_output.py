import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from model.errors import DataError
from service.cli.streams.line_output import LineOutput, opened_output
from service.cli.streams.read_files import ReadFiles

LINES = [f"line {number}" for number in range(5)]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()


class KilledError(BaseException):
    """The process ended here."""


@contextmanager
def opened(path: Path, identity: str | None = "same") -> Iterator[LineOutput]:
    """An output of a command that reads nothing."""
    with opened_output(path, identity, read=ReadFiles([])) as output:
        yield output


def write(path: Path, identity: str | None = "same") -> int:
    """Write the lines that are missing; how many were there."""
    with opened(path, identity) as output:
        num_done = output.num_done
        output.write(LINES[num_done:])
    return num_done


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (Path("/"), "^/: is a directory; it must be a file$"),
        (Path(), r"^\.: is a directory; it must be a file$"),
        (Path("a" * 300), "^a{300}: File name too long$"),
    ],
)
def test_a_name_that_no_file_can_have_is_one_error(path: Path, message: str) -> None:
    with pytest.raises(DataError, match=message):
        write(path)


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
@pytest.mark.parametrize("num_steps", [0, 1, 2, 3])
def test_a_command_that_is_killed_while_its_file_gets_its_name_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, num_steps: int
) -> None:
    path = tmp_path / name
    path.write_bytes(b"of an earlier command")
    left = iter(range(num_steps))

    def dying(step: str) -> None:
        whole = getattr(Path, step)

        def act(*arguments: object, **options: object) -> object:
            if next(left, None) is None:
                raise KilledError
            return whole(*arguments, **options)

        monkeypatch.setattr(Path, step, act)

    with monkeypatch.context():
        dying("replace")
        dying("unlink")
        try:
            write(path)
        except KilledError:
            is_killed = True
        else:
            is_killed = False
        monkeypatch.undo()
    assert is_killed == (num_steps < (3 if name.endswith(".gz") else 2))
    assert write(path) == (len(LINES) if is_killed else 0)
    written = path.read_bytes()
    assert (gzip.decompress(written) if name.endswith(".gz") else written) == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_a_half_packed_file_of_a_killed_command_is_packed_anew(tmp_path: Path) -> None:
    (tmp_path / ".out.gz.same.partial").write_bytes(CONTENT)
    (tmp_path / ".out.gz.same.partial.gz").write_bytes(gzip.compress(CONTENT)[:9])
    assert write(tmp_path / "out.gz") == len(LINES)
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["out.gz"]


def test_lines_without_an_identity_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / ".out.txt.new.partial").write_bytes(b"of something else\n")
    assert write(tmp_path / "out.txt", identity=None) == 0
    assert (tmp_path / "out.txt").read_bytes() == CONTENT


def test_what_failed_without_an_identity_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with opened(tmp_path / "out.txt", None) as output:
            output.write(LINES)
            raise KilledError

    with pytest.raises(KilledError):
        fail()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("identity", ["same", None])
def test_two_commands_do_not_write_one_file(tmp_path: Path, identity: str | None) -> None:
    path = tmp_path / "out.txt"
    with opened(path, identity) as output:
        output.write(LINES)
        with pytest.raises(DataError, match=r"partial: another command is writing it$"):
            write(path, identity)
    assert path.read_bytes() == CONTENT


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="pipe: is no regular file; to write there, redirect"):
        write(pipe)
    assert pipe.is_fifo()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder: is a directory; it must be a file"):
        write(tmp_path / "folder")


def test_a_link_stays_one(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "below" / "file"
    file.parent.mkdir()
    link.symlink_to(file)
    for _ in range(2):
        write(link)
        assert link.is_symlink()
        assert file.read_bytes() == CONTENT


def test_lines_that_were_ready_before_their_turn_survive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def begin() -> None:
        with opened(path) as output:
            output.write(LINES[:1])
            for number in (4, 2):
                output.keep(number, LINES[number])
            raise KilledError

    with pytest.raises(KilledError):
        begin()
    assert not path.exists()
    with opened(path) as output:
        assert (output.num_done, output.num_lines) == (1, 3)
        assert output.ahead == {4: LINES[4], 2: LINES[2]}
        for number in (1, 3):
            output.keep(number, LINES[number])
        output.settle(4)
        assert (output.num_done, output.ahead) == (5, {})
    assert path.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("torn", [b"3\tline", b"3", b"3\tcaf\xc3", b"\0\0\0\0", b"3\t\xff\n"])
def test_a_line_that_was_kept_in_part_is_not_kept(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "out.txt"
    (tmp_path / ".out.txt.same.partial").write_bytes(CONTENT[:7])
    ahead = tmp_path / ".out.txt.same.partial.ahead"
    ahead.write_bytes(b"0\tof another turn\n2\tline 2\n" + torn)
    with opened(path) as output:
        assert output.ahead == {2: "line 2"}
        for number in (1, 3, 4):
            output.keep(number, LINES[number])
        assert b"\n1\tline 1\n" in ahead.read_bytes()
        output.settle(4)
    assert path.read_bytes() == CONTENT


def test_a_command_that_is_killed_while_lines_get_their_turn_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".out.txt.same.partial").write_bytes(CONTENT[:17])  # two lines and a half
    ahead = "".join(f"{number}\t{LINES[number]}\n" for number in (3, 0, 2, 1, 4))
    (tmp_path / ".out.txt.same.partial.ahead").write_text(ahead)
    with opened(tmp_path / "out.txt") as output:
        assert output.num_done == 2
        output.settle(3)
    assert (tmp_path / "out.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["a" * 255, "a" * 252 + ".gz", "ü" * 127, "a" * 231, "b" * 205])
def test_a_name_may_be_as_long_as_the_system_takes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name

    def begin() -> None:
        with opened(path) as output:
            output.write(LINES[:2])
            raise KilledError

    with pytest.raises(KilledError):
        begin()
    assert write(path) == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("book.txt", "book.txt"),
        ("book.txt", "folder/../book.txt"),
        ("book.txt", "link.txt"),
        ("book.txt", "hard.txt"),
        ("link.txt", "book.txt"),
        ("hard.txt", "link.txt"),
        (".out.same.partial", "out"),
        (".out.same.partial.ahead", "out"),
        (".out.gz.same.partial.gz", "out.gz"),
    ],
)
def test_a_file_that_is_read_is_not_written(tmp_path: Path, name: str, output: str) -> None:
    book = tmp_path / "book.txt"
    (tmp_path / "folder").mkdir()
    book.write_bytes(CONTENT)
    (tmp_path / "link.txt").symlink_to(book)
    (tmp_path / "hard.txt").hardlink_to(book)
    if name.startswith("."):
        (tmp_path / name).write_bytes(CONTENT)
    before = sorted(tmp_path.iterdir())
    read = ReadFiles([tmp_path / name])
    with (
        pytest.raises(DataError, match=r"this command reads; write to another one$"),
        opened_output(tmp_path / output, "same", read=read),
    ):
        raise AssertionError
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / name).read_bytes() == CONTENT
