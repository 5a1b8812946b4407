"""The comparison of two checkouts: what is asked, what counts as different, when it ends."""

import json
import math
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.same_outputs import library, served, worker
from benchmarks.same_outputs.__main__ import compare, parse_arguments
from benchmarks.same_outputs.compared import (
    Deadline,
    Direction,
    at_once,
    bundled_directions,
    compared,
)
from benchmarks.same_outputs.text import (
    REAL_LINES,
    SENTENCES,
    chosen_files,
    read_text,
    shown_name,
    spread,
)
from model.request import Hypothesis
from support.tiny_checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).resolve().parents[2]
EN_DE = Direction(checkpoint="en-de-small", source="en", target="de")


def hypothesis(score: float) -> Hypothesis:
    return Hypothesis(
        token_ids=(3, 4), score=score, token_log_probs=(-0.1,), is_truncated=False, alignment=None
    )


def test_one_bit_of_a_score_makes_an_output_different() -> None:
    records = [
        [worker.hypothesis_record(hypothesis(score))]
        for score in (-1.0, -1.0, math.nextafter(-1.0, 0.0))
    ]
    row = compared("library", EN_DE, "int8", "greedy", [records[:1] * 2, records[1:]])
    assert (row.num_sentences, row.differing) == (2, (1,))


def test_outputs_of_other_numbers_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compared("http", EN_DE, "int8", "greedy", [[b"a", b"b"], [b"a"]])


def test_objects_are_found_where_older_checkouts_have_them() -> None:
    assert worker.find("Translator", ("model.no_such.place", "model.offline.translator"))
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        worker.find("Translator", ("model.no_such.place", "model.no_such"))
    with pytest.raises(AttributeError):  # the module is there: an older place is not tried
        worker.find("NoSuch", ("model.offline.translator", "model.config"))


def test_a_missing_import_of_a_module_is_no_other_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_place.py").write_text("import no_such_library\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        worker.find("Translator", ("broken_place", "model.offline.translator"))


def test_text_is_named_else_real_else_bundled(tmp_path: Path) -> None:
    assert chosen_files([Path("a.en")], "data") == {Path("a.en"): None}
    assert chosen_files([], None) == {SENTENCES: None}
    real = chosen_files([], "data")
    assert set(real.values()) == {REAL_LINES}
    for language in ("en", "zh", "de"):
        own = [path for path in real if path.suffix == f".{language}"]
        assert len(own) * REAL_LINES == 2_000


def test_a_results_file_names_corpora_and_no_folder_of_a_person() -> None:
    assert shown_name(Path("/home/anna/en-zh/dev/docs-heldout.zh")) == "en-zh/dev/docs-heldout.zh"
    assert shown_name(Path("/home/anna/a.en")) == shown_name(Path("/a.en")) == "a.en"


def test_lines_are_spread_and_blank_ones_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.en"
    path.write_text("1\n\n2\n3\u2028x\n \n4\n5\n6\n", encoding="utf-8")
    assert read_text({path: None}, None) == {"en": ["1", "2", "3\u2028x", "4", "5", "6"]}
    assert read_text({path: 4}, 2) == {"en": ["1", "4"]}
    assert spread("abc", 5) == ["a", "b", "c"]


def test_directions_are_those_of_the_bundled_checkpoints(tmp_path: Path) -> None:
    assert set(map(str, bundled_directions(ROOT))) == {
        "en → de",
        "de → en",
        "en → zh-Hans",
        "zh-Hans → en",
    }
    with pytest.raises(SystemExit, match="no bundled checkpoints"):
        bundled_directions(tmp_path)


def test_time_that_is_over_ends_everything() -> None:
    now = 5.0
    deadline = Deadline(10.0, clock=lambda: now)
    assert deadline.seconds_left() == 10.0
    now = 15.0
    with pytest.raises(SystemExit, match="time is over"):
        at_once([deadline.seconds_left, deadline.seconds_left])


def test_a_signal_ends_everything(tmp_path: Path) -> None:
    deadline = Deadline(math.inf)
    deadline.stop(15, None)
    task = {"checkpoint": "tiny", "num_threads": 1}
    with pytest.raises(SystemExit, match="stopped"):
        library.ask(tmp_path, task, deadline)


@contextmanager
def replying(status: int) -> Iterator[tuple[str, list[object]]]:
    """A server that answers each body with itself, and the bodies it got."""
    asked: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append((self.path, json.loads(body)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_whole_bodies_are_what_a_server_is_asked_for() -> None:
    bodies = [{"texts": "a", "target": "de"}, {"texts": "b", "target": "de"}]
    with replying(200) as (url, asked):
        found = served.ask(url, bodies, Deadline(60.0))
    assert list(map(json.loads, found)) == bodies
    assert asked == [("/v1/translate", body) for body in bodies]


def test_an_answer_that_is_no_translation_ends_the_comparison() -> None:
    with replying(503) as (url, _), pytest.raises(SystemExit, match="answered 503"):
        served.ask(url, [{"texts": "a", "target": "de"}], Deadline(60.0))


def make_checkout(folder: Path, *, seed: int) -> Path:
    """A checkout with the library and one small checkpoint."""
    left_out = shutil.ignore_patterns("__pycache__", "src", "*.so")
    shutil.copytree(ROOT / "model", folder / "model", ignore=left_out)
    (folder / "checkpoints").mkdir()
    write_tiny_checkpoint(folder / "checkpoints" / "tiny", seed=seed)
    return folder


def test_checkouts_with_other_weights_differ_and_one_with_itself_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_checkout(tmp_path / "old", seed=1)
    new = make_checkout(tmp_path / "new", seed=2)
    text = tmp_path / "text.en"
    text.write_text("The cat sees the river.\nNobody paints a letter again!\n", encoding="utf-8")
    flags = ["--text", str(text), "--ways", "library", "--compute-types", "float32"]
    flags += ["--results", str(tmp_path / "results")]

    def status(*checkouts: Path) -> int:
        words = [*map(str, checkouts), *flags]
        return compare(parse_arguments(words), words, Deadline(120.0))

    assert status(old, old) == 0
    (results,) = (tmp_path / "results").iterdir()
    written = json.loads(results.read_text(encoding="utf-8"))
    assert [row["num_differing"] for row in written["rows"]] == [0, 0]
    results.unlink()
    assert status(old, new) == 1
    (results,) = (tmp_path / "results").iterdir()
    written = json.loads(results.read_text(encoding="utf-8"))
    assert [row["search"] for row in written["rows"]] == ["greedy", "beam 4"]
    assert [row["differing"] for row in written["rows"]] == [[0, 1], [0, 1]]
    assert "cat" not in json.dumps(written)
    assert "4 of 4 outputs differ" in capsys.readouterr().out


def test_a_checkout_without_the_library_takes_no_other(tmp_path: Path) -> None:
    task = {
        "checkpoint": "tiny",
        "compute_type": "float32",
        "num_threads": 1,
        "searches": {},
        "directions": [],
    }
    with pytest.raises(SystemExit, match="No module named 'model'"):
        library.ask(tmp_path, task, Deadline(60.0))
