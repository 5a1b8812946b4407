import gzip
import os
import pty
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from model.config import LengthLimits, SearchConfig
from model.loading import load_for_decoding
from model.offline import opening
from model.offline.translator import Translator
from service.cli.main import main
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

LINES = ["The cat sees the river.", "", "  7.30\t", "She paints a letter.\r", "7.30 \u2028 8"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_bytes("\n".join(LINES).encode() + b"\n")
    return path


def _output(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["translate", *arguments]) == 0
    return capfd.readouterr().out.split("\n")[:-1]


def test_line_n_of_the_output_is_line_n_of_the_input(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = _output(capfd, str(source), "--checkpoint", str(checkpoint), "--beam-size", "2")
    assert len(lines) == len(LINES)
    assert lines[1:3] == LINES[1:3]
    assert lines[4] == LINES[4]
    assert lines[3].endswith("\r")
    assert lines[0] not in ("", LINES[0])


def test_a_text_may_be_an_argument(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2"]
    expected = _output(capfd, str(source), *flags)
    assert _output(capfd, "\n".join(LINES), *flags) == expected
    assert _output(capfd, "--text", "\n".join(LINES), *flags) == expected
    assert _output(capfd, "--text=./-", *flags) != []
    assert main(["translate", str(source), "--text", "A cat.", *flags]) == 1
    assert "give one of them" in capfd.readouterr().err


@pytest.mark.parametrize("words", [[""], ["--text", ""], ["--text="]])
def test_an_empty_text_is_an_empty_line_and_leaves_standard_input_alone(
    checkpoint: Path, words: list[str]
) -> None:
    """As in a shell's loop over the lines of its own standard input."""
    command = [sys.executable, "-m", "service.cli.main", "translate", *words]
    done = subprocess.run(
        [*command, "--checkpoint", str(checkpoint)],
        input=b"A cat waits.\n",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"\n"


def test_a_line_of_a_pipe_is_answered_before_the_next_one_is_written(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "service.cli.main", "translate", "--beam-size", "1"]
    with subprocess.Popen(
        [*command, "--checkpoint", str(checkpoint)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"7.30\n", b"8\n", b"\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("target", ["en-GB", "EN"])
def test_a_language_into_itself_is_copied_byte_for_byte(
    checkpoint: Path, source: Path, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--checkpoint", str(checkpoint), "--from", "en_US", "--to", target]
    assert _output(capfd, str(source), *flags) == LINES
    output = source.with_name("output.txt")
    assert main(["translate", str(source), *flags, "--output", str(output)]) == 0
    assert output.read_bytes() == source.read_bytes()
    assert main(["translate", str(source), *flags, "--output", str(source)]) == 1
    assert output.read_bytes() == source.read_bytes()


def test_a_text_in_the_targets_language_is_copied_and_a_file_that_begins_so_is_translated(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    beginning = "你好，你好吗？我们去河边看看。"
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2", "--to", "zh"]
    assert _output(capfd, beginning, *flags) == [beginning]
    file = tmp_path / "mixed.txt"
    file.write_text(f"{beginning}\n" * 40 + f"{LINES[0]}\n", encoding="utf-8")
    assert main(["translate", str(file), *flags]) == 0
    found = capfd.readouterr()
    assert "the beginning seems to be in zh-Hans already; all is translated from en" in found.err
    file.write_text(f"{LINES[0]}\n", encoding="utf-8")
    assert found.out.split("\n")[40] == _output(capfd, str(file), *flags)[0] != LINES[0]


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_a_checkpoint_that_asks_for_more_memory_than_there_is_is_refused_by_its_file(
    tmp_path: Path,
    source: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    limits = LengthLimits(max_source_length=131_072, max_target_length=131_072)
    directory = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,), limits=limits)
    monkeypatch.setattr(opening, "memory_limit", lambda _: 2**26)
    files = [str(source)] if command == "translate" else [str(source), str(source)]
    flags = ["--checkpoint", str(directory)] if command == "translate" else []
    places = [] if flags else [str(directory)]
    assert main([command, *places, *files, *flags]) == 1
    complaint = capsys.readouterr().err
    assert f"{directory / 'config.json'}: limits.max_source_length 131072" in complaint
    assert "there are at most 64.0 MiB" in complaint


def test_a_reader_that_has_enough_is_no_error(checkpoint: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("7.30\n" * 50_000)
    command = [sys.executable, "-m", "service.cli.main", "translate", str(many)]
    with subprocess.Popen(
        [*command, "--checkpoint", str(checkpoint)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"7.30\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_without_a_terminal_nothing_is_drawn(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(source), "--checkpoint", str(checkpoint)]) == 0
    shown = capfd.readouterr().err
    assert "\r" not in shown
    # An untrained network's translations are wrong, and the command says so once.
    assert shown.count("\n") == shown.count(
        "dragoman: warning: segments that may be wrong, by check: "
    )


def test_standard_input_is_read_where_no_file_is_named_and_a_terminal_gets_a_progress_bar(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "1"]
    expected = "\n".join([*_output(capfd, str(source), *flags), ""])
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    result = subprocess.run(
        [sys.executable, "-m", "service.cli.main", "translate", *flags],
        input=source.read_bytes(),
        stdout=subprocess.PIPE,
        stderr=terminal,
        check=True,
    )
    os.close(terminal)
    assert result.stdout.decode() == expected
    assert b"5 lines" in os.read(screen, 10_000)
    os.close(screen)


def test_no_bar_stands_before_lines_that_appear_on_the_terminal(
    checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--text", "A cat.", "--checkpoint", str(checkpoint), "--beam-size", "1"]
    (expected,) = _output(capfd, *flags)
    screen, terminal = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "service.cli.main", "translate", *flags],
        stdout=terminal,
        stderr=terminal,
        check=True,
    )
    os.close(terminal)
    first, *_ = os.read(screen, 10_000).decode().split("\r\n")
    assert first == expected
    os.close(screen)


@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_an_output_file_holds_what_standard_output_would(
    checkpoint: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], suffix: str
) -> None:
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2"]
    expected = "\n".join([*_output(capfd, str(source), *flags), ""]).encode()
    packed = tmp_path / "source.txt.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    output = tmp_path / "out" / f"lines.{suffix}"
    output.parent.mkdir()
    for _ in range(2):  # the second time it is replaced
        assert _output(capfd, str(packed), *flags, "--output", str(output)) == []
        raw = output.read_bytes()
        assert (gzip.decompress(raw) if suffix.endswith(".gz") else raw) == expected
        assert list(output.parent.iterdir()) == [output]


def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_a_reference(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_text("A cat.\nShe waits.\n")
    read: list[str] = []

    def first(candidates: list[str], reference: str) -> str:
        read.append(reference)
        return candidates[0]

    monkeypatch.setattr("model.offline.evaluate.nearest", first)
    for content in ("猫。\n她等待。\n".encode(), "猫。\r\n她等待。\r\n".encode("utf-8-sig")):
        reference = tmp_path / "reference"
        reference.write_bytes(content)
        flags = ["--checkpoint", str(checkpoint), "--nearest-to", str(reference)]
        assert main(["translate", str(source), *flags]) == 0
        assert sorted(read) == ["她等待。", "猫。"]
        read.clear()


@pytest.mark.parametrize("is_reference", [False, True])
def test_a_pipe_is_read_once_and_is_not_lost(
    checkpoint: Path, source: Path, tmp_path: Path, *, is_reference: bool
) -> None:
    expected, output, pipe = (tmp_path / name for name in ("expected", "output", "pipe"))
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2"]
    rest = ["--nearest-to", str(source)] if is_reference else []
    assert main(["translate", str(source), *flags, *rest, "--output", str(expected)]) == 0
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(pipe.write_bytes, source.read_bytes())
        rest = ["--nearest-to", str(pipe)] if is_reference else []
        name = str(source if is_reference else pipe)
        assert main(["translate", name, *flags, *rest, "--output", str(output)]) == 0
        written.result()
    assert output.read_bytes() == expected.read_bytes()


def test_the_hypothesis_nearest_to_a_reference_can_be_chosen(
    checkpoint: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    translator = Translator(load_for_decoding(checkpoint))
    wide = SearchConfig(beam_size=4, num_hypotheses=4)
    found = translator.alternatives(LINES, EN_ZH, wide)
    best = [translation.text for translation in translator.translate(LINES, EN_ZH, wide)]
    assert [own[0].text for own in found] == best
    assert [len(own) for own in found][1:3] == [1, 1]  # nothing to translate
    assert len({translation.text for translation in found[0]}) == 4
    wanted = [own[-1].text for own in found]
    reference = tmp_path / "reference.txt"
    reference.write_bytes("".join(f"{line}\n" for line in wanted).encode())
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "4", "--nearest-to", str(reference)]
    lines = _output(capfd, str(source), *flags)
    # A reference that is a hypothesis is its own nearest; the blank and the copied are themselves.
    assert lines == wanted
    assert lines != best
    reference.write_text("one\n")
    assert main(["translate", str(source), *flags]) == 1
    assert "reference.txt:2: no such line" in capfd.readouterr().err


def test_every_line_begins_as_asked_and_has_its_terms(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, terms = tmp_path / "source.txt", tmp_path / "terms.tsv"
    source.write_text("The cat sees the river.\n7.30\n", encoding="utf-8")
    terms.write_text("river\tZ9 河流\n", encoding="utf-8")
    flags = ["--checkpoint", str(checkpoint), "--prefix", "我 的", "--glossary", str(terms)]
    flags += ["--top-k", "5", "--seed", "3", "--beam-size", "2"]
    first, second = _output(capfd, str(source), *flags)
    assert first.startswith("我 的")
    assert second == "7.30"
    assert _output(capfd, str(source), *flags) == [first, second]
