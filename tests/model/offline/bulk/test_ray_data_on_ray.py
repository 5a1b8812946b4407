"""Pipelines of Ray Data on a real cluster of this machine: actors that die, rows that are bad."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.offline.bulk.ray_data import ColumnTranslator, translation_method
from model.offline.bulk.task import Method, open_network
from support.bulk_jobs import method_of, sentences
from support.ray_cluster import QUIET, RunningCluster, begun_cluster
from support.running_server import ROOT
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

NUM_ROWS = 60
NEW = f"text_{EN_ZH.target}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    # Two actors, and what reads and writes beside them.
    yield from begun_cluster([sys.executable], {"PYTHONPATH": str(ROOT)}, num_cores=3)


@pytest.fixture(scope="module")
def data(cluster: RunningCluster) -> Iterator[Any]:
    """Ray Data, connected."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        import ray
        import ray.data

        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray.data
        ray.shutdown()


@pytest.fixture(scope="module")
def method(tmp_path_factory: pytest.TempPathFactory) -> Method:
    return method_of(
        write_tiny_checkpoint(tmp_path_factory.mktemp("ray") / "tiny", pairs=(EN_ZH,)),
        max_characters=20_000,
    )


@pytest.fixture(scope="module")
def texts() -> list[str]:
    found = sentences(NUM_ROWS)
    found[7] = " ".join(sentences(200))  # a long row among short ones
    return found


@pytest.fixture(scope="module")
def expected(method: Method, texts: list[str]) -> list[str]:
    """What the offline translator makes of them."""
    found = open_network(method).translate(texts, EN_ZH, method.search, control=method.control)
    return [one.text for one in found]


def _rows(texts: list[str]) -> list[dict[str, object]]:
    return [{"n": number, "text": text} for number, text in enumerate(texts)]


def _translated(
    data: Any,
    dataset: Any,
    method: Method,
    *,
    translator: type = ColumnTranslator,
    form: str = "pyarrow",
    columns: tuple[str, ...] = ("text",),
    num_actors: int = 1,
) -> list[dict[str, Any]]:
    """Rows by number."""
    found = dataset.map_batches(
        translator,
        fn_constructor_kwargs={"method": method, "columns": columns},
        batch_format=form,
        batch_size=4,
        compute=data.ActorPoolStrategy(size=num_actors, max_concurrent_calls_per_actor=2),
        num_cpus=1,
    ).take_all()
    return sorted(found, key=lambda row: int(row["n"]))


@pytest.mark.parametrize("way", [("pyarrow", 2), ("numpy", 1)])
def test_a_pipeline_has_the_words_of_the_offline_translator(
    data: Any, method: Method, texts: list[str], expected: list[str], way: tuple[str, int]
) -> None:
    form, num_actors = way
    dataset = data.from_items(_rows(texts), override_num_blocks=6)
    found = _translated(data, dataset, method, form=form, num_actors=num_actors)
    assert [row[NEW] for row in found] == expected
    assert [row["text"] for row in found] == texts
    assert {row["untranslated"] for row in found} == {None}


def test_an_actor_that_dies_on_its_way_costs_no_row(
    data: Any, method: Method, texts: list[str], expected: list[str], tmp_path: Path
) -> None:
    class Mortal(ColumnTranslator):
        """One that is killed with its second batch under way, for the first time."""

        num_batches = 0

        async def __call__(self, batch: Any) -> AsyncIterator[Any]:
            self.num_batches += 1
            if self.num_batches == 2:
                try:
                    (tmp_path / "died").touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            async for done in super().__call__(batch):
                yield done

    dataset = data.from_items(_rows(texts), override_num_blocks=6)
    found = _translated(data, dataset, method, translator=Mortal)
    assert (tmp_path / "died").exists()
    assert [row["n"] for row in found] == list(range(NUM_ROWS))
    assert [row[NEW] for row in found] == expected


@pytest.mark.parametrize("form", ["pyarrow", "numpy"])
def test_bad_rows_have_a_reason_and_the_others_their_translation(
    data: Any, method: Method, texts: list[str], expected: list[str], form: str
) -> None:
    rows = _rows(texts)
    rows[3]["text"], rows[5]["text"], rows[9]["text"] = None, "a" * 20_001, 12
    dataset = data.from_items(rows, override_num_blocks=1)
    found = _translated(data, dataset, method, form=form)
    assert {row["n"]: row["untranslated"] for row in found if row["untranslated"]} == {
        3: "text: null",
        5: "text: 20001 characters; a text may have 20000",
        9: "text: not a string",
    }
    wanted: list[str | None] = [*expected]
    wanted[3] = wanted[5] = wanted[9] = None
    assert [row[NEW] for row in found] == wanted


def _failure(data: Any, method: Method, **others: Any) -> str:
    """The line of ours in what Ray tells."""
    dataset = data.from_items(_rows(["A cat."]))
    with pytest.raises(Exception, match=r"model\.errors\.") as raised:
        _translated(data, dataset, method, **others)
    (line,) = {one for one in str(raised.value).splitlines() if one.startswith("model.errors.")}
    return line.removeprefix("model.errors.")


def test_a_column_that_is_not_there_is_one_error(data: Any, method: Method) -> None:
    told = _failure(data, method, columns=("text", "title"))
    assert told == "DataError: the data has no column 'title'; it has 'n', 'text'"


def test_another_checkpoint_than_the_pipelines_is_one_error(data: Any, method: Method) -> None:
    told = _failure(data, replace(method, fingerprint="0" * 64))
    assert told.startswith(f"CheckpointError: {method.checkpoint}: is another checkpoint here: ")


def test_a_cluster_without_this_package_is_told_and_does_not_hang(
    method: Method, tmp_path: Path
) -> None:
    script = tmp_path / "pipeline.py"
    script.write_text(
        "import sys, ray, ray.data\n"
        "from model.offline.bulk.ray_data import ColumnTranslator, translation_method\n"
        "ray.init(address=sys.argv[1], log_to_driver=False)\n"
        "method = translation_method(sys.argv[2])\n"
        "ray.data.from_items([{'text': 'A cat.'}]).map_batches(\n"
        "    ColumnTranslator, compute=ray.data.ActorPoolStrategy(size=1),\n"
        "    fn_constructor_kwargs={'method': method, 'columns': ['text']}, num_cpus=1,\n"
        ").materialize()\n",
        encoding="utf-8",
    )
    # The interpreter without `site`: it knows Ray by its path, and no editable installation.
    site = sysconfig.get_paths()["purelib"]
    other = {"PYTHONPATH": site, "PYTHONNOUSERSITE": "1"}
    for cluster in begun_cluster([sys.executable, "-S"], other):
        done = subprocess.run(
            [sys.executable, str(script), cluster.address, str(method.checkpoint)],
            env={**os.environ, **QUIET}, cwd=tmp_path, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 1
        assert "ModuleNotFoundError: No module named 'model'" in done.stderr


def test_the_example_of_the_page_runs(data: Any, cluster: RunningCluster, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?ColumnTranslator.*?)```", page, re.DOTALL)
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    rows = [
        {"id": 1, "title": "A cat.", "body": "The dog sleeps."},
        {"id": 2, "title": "A house.", "body": None},
    ]
    data.from_items(rows, override_num_blocks=1).write_parquet(str(tmp_path / "in"))
    done = subprocess.run(
        [sys.executable, "-c", example.replace("/data/", f"{tmp_path}/")],
        env={**os.environ, **QUIET, "RAY_ADDRESS": cluster.address, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = data.read_parquet(str(tmp_path / "out")).take_all()
    own = translation_method(ROOT / "checkpoints" / "en-de-small", target="de")
    cat, dog, house = open_network(own).translate(
        ["A cat.", "The dog sleeps.", "A house."], own.pair, own.search
    )
    assert found == [
        {**rows[0], "title_de": cat.text, "body_de": dog.text, "untranslated": None},
        {
            **rows[1], "title_de": house.text, "body_de": None, "untranslated": "body: null",
        },
    ]  # fmt: skip
