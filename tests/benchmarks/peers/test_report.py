import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib comes with the extra bench")
pytest.importorskip("psutil", reason="psutil comes with the extra bench")

from benchmarks.peers import report
from benchmarks.peers.results import latest
from support.peers_results import DRAGOMAN, all_results

README = f"# Title\n\n{report.BEGIN}\nold\n{report.END}\n\nRest.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    for found in all_results().values():
        content = {name: value for name, value in found.items() if name != "file"}
        (tmp_path / "results" / found["file"]).write_text(json.dumps(content))
    (tmp_path / "README.md").write_text(README)
    return tmp_path


def _write_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--results", folder / "results", "--docs", folder / "docs"]
    flags += ["--readme", folder / "README.md"]
    monkeypatch.setattr(sys, "argv", ["report", *map(str, flags)])
    report.main()


def test_page_figures_and_readme_are_written_and_all_links_lead_somewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    figures = re.findall(r"!\[\w+\]\((.+)\)", page)
    assert len(figures) == 3
    assert all((folder / "docs" / figure).read_text().startswith("<?xml") for figure in figures)
    assert "| vocabulary 58101, beam 4, 1 sentence | 210 | 90 | 100 | 20 | 2.10× | 10.50× |" in page
    assert "| growth of resident memory, peak | 1.20× | ≤ 1× | no |" in page
    assert "Test CPU" in page
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# Title\n")
    assert readme.endswith("Rest.\n")
    assert "old" not in readme
    assert "(benchmarks/results/peers-offline-20260102-030405.json)" in readme
    assert "| sentences/s, 32 clients, bundled | 190.0 | 100.0 | – | 1.90× |" in readme


def test_the_same_results_give_the_same_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> dict[str, bytes]:
        _write_report(folder, monkeypatch)
        paths = [*(folder / "docs").rglob("*.*"), folder / "README.md"]
        return {path.name: path.read_bytes() for path in paths}

    assert written() == written()


def test_every_table_row_has_as_many_cells_as_its_head() -> None:
    results = all_results()
    page = report.page(results, dict.fromkeys(results, "figure.svg"))
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        widths = {line.count(" | ") for line in block.splitlines()}
        assert len(widths) == 1, block


def test_a_table_that_a_run_left_out_is_of_an_earlier_one_or_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = all_results()["served"]
    partial = [
        one | {"open": [], "short_beside_long": [], "closed": one["closed"][2:]}
        for one in served["checkpoints"]
    ]
    later = folder / "results" / "peers-served-20260202-000000.json"
    later.write_text(json.dumps(served | {"checkpoints": partial}))
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    before, _, after = page.partition("What this run left out is of [an earlier run]")
    assert after.startswith(f"(../benchmarks/results/{served['file']}), at `abc`: ")
    assert "| open loop |" not in before
    assert "| open loop |" in after
    assert "| 1 × Dragoman int8 |" in after
    (folder / "results" / served["file"]).unlink()
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    assert "left out" not in page
    assert "| open loop |" not in page
    assert "`make bench-peers BENCH_FLAGS='--only served'`" in page


def test_only_what_was_measured_is_reported() -> None:
    results = {"memory": all_results()["memory"]}
    assert "## Served" not in report.page(results, {"memory": "figure.svg"})
    assert "tokens/s" not in report.readme_table(results)
    assert DRAGOMAN in report.readme_table(results)


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        report.BEGIN,
        report.END + report.BEGIN,
        README + README,
        README + report.END,
    ],
)
def test_a_readme_with_other_markers_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        report.between_markers(text, "new")


def test_runs_that_were_held_to_an_instruction_set_have_a_table_with_its_column(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline = all_results()["offline"]
    for name in ("avx2", "avx512"):
        content = offline | {"instruction_set": name, "is_instruction_set_asked_for": True}
        path = folder / "results" / f"{name}-peers-offline-20260102-030405.json"
        path.write_text(json.dumps(content))
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    row = "| vocabulary 58101, beam 4, 1 sentence | avx2 | 210 | 100 | 2.10× | ≥ 1.5× | yes |"
    assert row in page
    assert row.replace("avx2", "avx512") in page
    assert "(../benchmarks/results/avx2-peers-offline-20260102-030405.json)" in page
    assert latest(folder / "results")["offline"]["file"] == offline["file"]


def test_of_an_instruction_set_that_was_held_elsewhere_the_processor_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = all_results()["offline"]
    held = {"instruction_set": "avx2", "is_instruction_set_asked_for": True}
    machine = {**content["machine"], "processor": "Another CPU"}
    path = folder / "results" / "avx2-peers-offline-20260102-030405.json"
    path.write_text(json.dumps({**content, **held, "machine": machine}))
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    assert "than the rest (Test CPU with avx2): avx2 on Another CPU with avx2." in page


def test_runs_on_other_processors_have_a_table_and_are_no_latest_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline = all_results()["offline"]
    other = folder / "results" / "processors" / "zen-1"
    other.mkdir(parents=True)
    for name in ("peers-offline-20300101-000000.json", "peers-offline-20290101-000000.json"):
        (other / name).write_text(json.dumps(offline | {"started": name}))
    _write_report(folder, monkeypatch)
    page = (folder / "docs" / "benchmarks.md").read_text()
    row = "| vocabulary 58101, beam 4, 1 sentence | zen-1 | 210 | 100 | 2.10× | ≥ 2× | yes |"
    assert row in page
    assert "(../benchmarks/results/processors/zen-1/peers-offline-20300101-000000.json)" in page
    assert latest(folder / "results")["offline"]["file"] == offline["file"]


def test_results_of_several_processors_are_refused() -> None:
    def of(*processors: str) -> dict[str, dict[str, dict[str, str]]]:
        return {f"{n}": {"machine": {"processor": one}} for n, one in enumerate(processors)}

    report.check_one_processor(of("A", "A (family 25, model 17)", "A (family 25, model 17)"))
    with pytest.raises(SystemExit, match=r"model 17\) and A \(family 26"):
        report.check_one_processor(of("A (family 25, model 17)", "A (family 26, model 2)"))


def test_the_latest_of_every_benchmark_is_read(folder: Path) -> None:
    later = folder / "results" / "peers-memory-20260202-000000.json"
    later.write_text(json.dumps({"rivals": {}}))
    found = latest(folder / "results")
    assert found["memory"] == {"rivals": {}, "file": later.name}
    assert set(found) == {"offline", "served", "memory"}
    assert latest(folder) == {}


def test_the_readme_and_the_page_are_of_the_latest_results() -> None:
    root = Path(__file__).parents[3]
    results = latest(root / "benchmarks" / "results")
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert report.between_markers(readme, report.readme_table(results)) == readme
    page = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert all(found["file"] in page for found in results.values())
