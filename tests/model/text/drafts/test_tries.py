"""What becomes of a stretch with many marks, and that its work grows as the stretch does."""

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.drafts.tries import Tries
from model.text.marks.finding import find_inner_marks
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint
from support.work import num_lines


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Tries:
    directory = write_tiny_checkpoint(tmp_path_factory.mktemp("tries") / "tiny")
    manifest = read_manifest(directory)
    return Tries(load_tokenizer(directory, manifest), manifest.limits)


@pytest.mark.parametrize("part", ["a😀", "<b>a</b> ", "{x} a ", "a*b ", "a\U00108000", "%sa "])
def test_twice_the_marks_are_about_twice_the_work(tries: Tries, part: str) -> None:
    def work(num_parts: int) -> int:
        text = (part * num_parts).strip()
        marks = find_inner_marks(text)
        return num_lines(lambda: list(tries.first(text, marks, EN_ZH)))

    assert work(1600) < 3 * work(800)
