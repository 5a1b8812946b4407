import gzip
import os
from pathlib import Path

import pytest

from model.errors import DataError
from service.cli.line_output import opened_output

LINES = [f"line {number}" for number in range(5)]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()


class KilledError(BaseException):
    """The process ended here."""


def write(path: Path, identity: str | None = "same") -> int:
    """Write the lines that are missing; how many were there."""
    with opened_output(path, identity) as output:
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
@pytest.mark.parametrize("num_steps", [0, 1, 2])
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
    assert is_killed == (num_steps < (2 if name.endswith(".gz") else 1))
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
        with opened_output(tmp_path / "out.txt", None) as output:
            output.write(LINES)
            raise KilledError

    with pytest.raises(KilledError):
        fail()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("identity", ["same", None])
def test_two_commands_do_not_write_one_file(tmp_path: Path, identity: str | None) -> None:
    path = tmp_path / "out.txt"
    with opened_output(path, identity) as output:
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
