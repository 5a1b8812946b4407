"""The figures of docs/scale.md against the results that the page names."""

import pytest

from benchmarks.capacity.page import PAGE, blocks, named_needs, read, written

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_figures_of_the_run_that_it_names():
    needs = named_needs(TEXT)
    measured, told = read(needs)
    assert written(TEXT, blocks(measured, told, needs.name)) == TEXT, (
        f"run `python -m benchmarks.capacity.page benchmarks/results/{needs.name}`"
    )


def test_a_run_on_a_device_is_told_by_its_devices():
    needs = named_needs(TEXT)
    measured, told = read(needs)
    need = told["capacity"][0]["needs"][0] | {"num_devices": 7}
    only = told["capacity"][0] | {"needs": [need]}
    found = blocks({**measured, "device": "cuda"}, {**told, "capacity": [only]}, needs.name)
    assert "requests a second and GPU" in found["classes"]
    assert "threads have nothing to share" in found["classes"]
    assert "+ 7 GPUs" in found["needs"]


def test_what_is_between_marks_is_replaced_and_nothing_else():
    page = "a <!-- run:begin -->old<!-- run:end --> z"
    assert written(page, {"run": "new"}) == "a <!-- run:begin -->\nnew\n<!-- run:end --> z"


def test_a_page_without_marks_is_an_error():
    with pytest.raises(ValueError, match="no marks <!-- run:begin -->"):
        written("a", {"run": "new"})
