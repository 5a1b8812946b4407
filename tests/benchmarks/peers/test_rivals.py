"""Real engines on a tiny network: in processes of their own, and behind HTTP."""

import asyncio
import os
from pathlib import Path

import httpx
import pytest

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
pytest.importorskip("psutil", reason="psutil comes with the extra bench")

import psutil

from benchmarks.peers.ctranslate2_server import ServerSettings, create_app
from benchmarks.peers.offline import (
    EXACT_SUFFIX,
    Entry,
    Point,
    file_points,
    measure_point,
    small_points,
)
from benchmarks.peers.plan import QUICK
from benchmarks.peers.rivals import (
    CTRANSLATE2,
    DRAGOMAN_FLOAT32,
    DRAGOMAN_INT8,
    Spec,
    all_specs,
    ctranslate2_settings,
    running,
)
from benchmarks.peers.rounds import Budget
from benchmarks.peers.served import best_settings, open_rates
from benchmarks.peers.text import Lines, TextTask
from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.native import kernels
from model.offline.translator import Translator
from service.models.requests.text_work import are_short
from support.first_drafts import first_draft
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint

PAIRS = list(generated_pairs(6))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peers")
    checkpoint = load_checkpoint(write_tiny_checkpoint(folder / "checkpoint", pairs=(EN_ZH,)))
    export_ctranslate2(checkpoint, folder / "ctranslate2-int8", quantization="int8")
    export_ctranslate2(checkpoint, folder / "ctranslate2-float32")
    return folder


def _specs() -> list[Spec]:
    names = {DRAGOMAN_FLOAT32 if kernels.find_problem() else DRAGOMAN_INT8, CTRANSLATE2}
    return [spec for spec in all_specs(1) if spec.name in names]


def test_rivals_in_processes_take_turns_and_are_measured_alike(models: Path) -> None:
    specs = _specs()
    lines = Lines(
        name="generated",
        sources=tuple(english for english, _ in PAIRS),
        references=tuple(chinese for _, chinese in PAIRS),
    )
    task = TextTask(models / "checkpoint", lines)
    work = task.work(beam_size=1)
    entries = [
        Entry(name=spec.name, spec=spec, candidates=[spec.settings], max_rounds=2) for spec in specs
    ]
    point = Point(workload="text", facts={}, work=work, sample=work, entries=entries, task=task)
    with running(specs, models=models, num_threads=1) as rivals:
        found = measure_point(point, rivals, Budget(clock=lambda: 0.0, deadline=1e9))
        sizes = {name: rival.ask("memory") for name, rival in rivals.items()}
    assert set(found["rivals"]) == {spec.name for spec in specs}
    for name, result in found["rivals"].items():
        assert len(result["rounds"]) == 2
        assert result["tokens_per_second"] > 0
        assert 0 < result["num_tokens"] <= sum(work.max_lengths)
        assert "tok:zh" in result["bleu"]["signature"]
        assert 0 < sizes[name]["resident_bytes"] <= sizes[name]["peak_bytes"]  # type: ignore[operator]


def test_a_forced_length_is_the_same_for_both(models: Path) -> None:
    (point, *_) = small_points(QUICK.offline, _specs(), 600)
    specs = _specs()
    with running([specs[-1]], models=models, num_threads=1) as rivals:
        timing = rivals[CTRANSLATE2].translate(point.work, specs[-1].settings, with_targets=True)
    assert timing.num_tokens == sum(point.work.max_lengths)


def test_threads_that_wait_actively_are_in_a_process_that_is_stopped_meanwhile(
    models: Path,
) -> None:
    (spec,) = [spec for spec in all_specs(2) if spec.name == CTRANSLATE2]
    (point, *_) = small_points(QUICK.offline, [spec], 600)
    active = ctranslate2_settings(intra_threads=2, waits_actively=True)
    assert active in point.entries[0].candidates
    with running([spec], models=models, num_threads=2) as rivals:
        rival = rivals[CTRANSLATE2]
        usual = rival.translate(point.work, spec.settings, with_targets=True)
        found = [rival.translate(point.work, active, with_targets=True) for _ in range(2)]
        assert [one.targets for one in found] == [usual.targets] * 2
        children = psutil.Process().children()
        variables = [child.environ().get("OMP_WAIT_POLICY") for child in children]
        assert sorted(filter(None, variables)) == ["ACTIVE"]
        (waiting,) = [child for child in children if "OMP_WAIT_POLICY" in child.environ()]
        os.waitid(os.P_PID, waiting.pid, os.WSTOPPED | os.WNOWAIT)  # returns once it is stopped
        assert waiting.status() == psutil.STATUS_STOPPED
        before = rival.cpu_seconds()
        rival.translate(point.work, spec.settings)
        assert rival.cpu_seconds() - before < 1.0
    assert not waiting.is_running()


def test_a_process_that_leaves_is_named(models: Path) -> None:
    (spec,) = [spec for spec in all_specs(1) if spec.name == CTRANSLATE2]
    with (
        running([spec], models=models, num_threads=1) as rivals,
        pytest.raises(RuntimeError, match="the process of CTranslate2 has left"),
    ):
        rivals[CTRANSLATE2].ask("nonsense")


def test_a_file_is_of_the_vocabulary_that_is_asked_for_with_both_searches() -> None:
    points = file_points(QUICK.offline, all_specs(2), 600)
    assert [(point.facts["vocabulary"], point.work.beam_size) for point in points] == [
        (600, 4),
        (600, 1),
    ]
    assert {entry.name for entry in points[0].entries} >= {DRAGOMAN_INT8, CTRANSLATE2}


def test_every_rival_is_measured_greedily_and_with_four_beams() -> None:
    points = small_points(QUICK.offline, all_specs(2), 600)
    assert [(p.work.beam_size, len(p.work.sources)) for p in points] == [
        (4, 1),
        (4, 4),
        (1, 1),
        (1, 4),
    ]
    assert all(len(point.entries) == len(all_specs(2)) for point in points)
    assert not any(entry.name.endswith(EXACT_SUFFIX) for p in points for entry in p.entries)


def test_the_server_around_ctranslate2_answers_what_the_checkpoint_says(models: Path) -> None:
    checkpoint = load_checkpoint(models / "checkpoint")
    texts = [english for english, _ in PAIRS]
    long_text = "\n".join(texts * 4)
    assert not are_short(len(long_text), 1)
    assert all(are_short(len(text), 1) for text in texts)
    settings = ServerSettings(
        max_batch_size=4,
        window_seconds=0.001,
        inter_threads=1,
        intra_threads=1,
        compute_type="float32",
        beam_size=1,
    )
    ready: list[str] = []
    app = create_app(models, settings, on_ready=lambda: ready.append("warm"))

    async def ask() -> list[dict[str, object]]:
        transport = httpx.ASGITransport(app=app)
        async with (
            app.running(),
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
        ):
            assert ready == ["warm"]
            asked = (*texts, texts, long_text)
            bodies = [{"q": text, "source": "en", "target": "zh"} for text in asked]
            replies = await asyncio.gather(
                *(client.post("/translate", json=body) for body in bodies)
            )
            return [reply.json() for reply in replies]

    *single, together, long = [reply["translatedText"] for reply in asyncio.run(ask())]
    assert together == single
    assert long == first_draft(Translator(checkpoint), long_text, EN_ZH, SearchConfig(beam_size=1))
    search = SearchConfig(beam_size=1)
    assert single == [first_draft(Translator(checkpoint), text, EN_ZH, search) for text in texts]


def test_the_fastest_settings_are_taken() -> None:
    tried = [
        {"settings": {"num_threads": 1}, "sentences_per_second": 10.0},
        {"settings": {"num_threads": 2}, "sentences_per_second": 11.0},
    ]
    assert best_settings(tried) == {"num_threads": 2}


def test_shares_of_the_smaller_capacity_go_to_both_servers() -> None:
    assert open_rates({"slow": 10.0, "fast": 100.0}, [0.5, 0.9]) == [
        ("fast", 5.0),
        ("slow", 5.0),
        ("fast", 9.0),
        ("slow", 9.0),
        ("fast", 50.0),
        ("fast", 90.0),
    ]
