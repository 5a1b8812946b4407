"""Checkpoints that are replaced while they are served, and several that are served together."""

import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.translator import Translator
from service.access.keys import ApiKey, new_key
from support.running_server import POLL_SECONDS, RunningServer, running_server
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

ENGLISH = "The cat sees the river."
CHINESE = "我的朋友等待一封信。"


def _translate(server: RunningServer, text: str = ENGLISH, target: str = "zh") -> httpx.Response:
    with server.client() as client:
        return client.post("/translate", json={"q": text, "source": "auto", "target": target})


def _offline(checkpoint: Path, text: str) -> str:
    """What the offline translator makes of a text, with the server's default search."""
    runnable = load_for_decoding(checkpoint, num_threads=1)
    translator = Translator(runnable, max_rows=16)
    (pair,) = runnable.manifest.pairs
    [result] = translator.translate([text], pair, SearchConfig(beam_size=4))
    return result.text


def _wait_logged(log: Path, event: str) -> None:
    """Read the log until the event is there; pytest's timeout is the bound."""
    while f'"event": "{event}"' not in log.read_text():
        time.sleep(POLL_SECONDS)


def _replace(checkpoint: Path, *, seed: int) -> None:
    write_tiny_checkpoint(checkpoint, pairs=(EN_ZH,), seed=seed)


def test_sighup_serves_the_new_checkpoint_and_loses_no_request(tmp_path: Path) -> None:
    checkpoint, log = tmp_path / "tiny", tmp_path / "log.jsonl"
    _replace(checkpoint, seed=5)
    before = _offline(checkpoint, ENGLISH)
    with running_server(checkpoint, log) as server:
        old = server.engine_ids()
        _replace(checkpoint, seed=6)
        after = _offline(checkpoint, ENGLISH)
        assert before != after
        assert _translate(server).json()["translatedText"] == before
        with ThreadPoolExecutor(4) as threads:
            server.signal(signal.SIGHUP)
            replies: list[httpx.Response] = []
            while '"event": "reloaded"' not in log.read_text():
                replies += threads.map(lambda _: _translate(server), range(8))
        assert {reply.status_code for reply in replies} == {200}
        assert {reply.json()["translatedText"] for reply in replies} <= {before, after}
        assert _translate(server).json()["translatedText"] == after
        while len(engines := server.engine_ids()) > 1:  # the old one leaves
            time.sleep(POLL_SECONDS)
        assert engines != old
        metrics = server.metrics()
        assert metrics["dragoman_engine_restarts_total{reason=exit}"] == 0
        assert metrics["dragoman_finished_segments_total"] >= len(replies) + 2


def test_work_that_began_on_the_old_engine_ends_there(tmp_path: Path) -> None:
    checkpoint, log = tmp_path / "tiny", tmp_path / "log.jsonl"
    _replace(checkpoint, seed=5)
    slow = {"DRAGOMAN_MAX_SLOTS": "1", "DRAGOMAN_MAX_ROWS": "16"}
    slow |= {"DRAGOMAN_COMPUTE_TYPE": "float32"}
    texts = [f"The cat number {number} sees the river and paints." for number in range(14)]
    with running_server(checkpoint, log, **slow) as server, ThreadPoolExecutor(1) as threads:

        def translate_all() -> httpx.Response:
            body = {"texts": texts, "target": "zh-Hans", "beam_size": 16, "timeout_seconds": 300}
            with server.client(timeout=300) as client:
                return client.post("/v1/translate", json=body)

        reply = threads.submit(translate_all)
        while server.metrics()["dragoman_received_segments_total"] < len(texts):
            time.sleep(POLL_SECONDS)
        _replace(checkpoint, seed=6)
        server.signal(signal.SIGHUP)
        _wait_logged(log, "reloaded")
        assert reply.result().status_code == 200
        assert len(reply.result().json()["translations"]) == len(texts)


@pytest.mark.parametrize("what", ["damaged", "gone"])
def test_a_checkpoint_that_cannot_be_served_leaves_the_old_one(tmp_path: Path, what: str) -> None:
    checkpoint, log = tmp_path / "tiny", tmp_path / "log.jsonl"
    _replace(checkpoint, seed=5)
    with running_server(checkpoint, log) as server:
        before = _translate(server).json()
        engines = server.engine_ids()
        if what == "gone":
            shutil.rmtree(checkpoint)
        else:
            weights = bytearray((checkpoint / "model.safetensors").read_bytes())
            weights[-1] ^= 1
            (checkpoint / "model.safetensors").write_bytes(weights)
        server.signal(signal.SIGHUP)
        _wait_logged(log, "reload_failed")
        assert _translate(server).json() == before
        assert server.engine_ids() == engines


def test_without_an_administrator_nobody_reloads(server: RunningServer) -> None:
    with server.client() as client:
        reply = client.post("/admin/reload")
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_two_checkpoints_are_served_as_if_each_were_alone(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    there = write_tiny_checkpoint(folder / "en-zh", name="there", pairs=(EN_ZH,), seed=5)
    back = write_tiny_checkpoint(folder / "zh-en", name="back", pairs=(ZH_EN,), seed=6)
    with running_server(folder, tmp_path / "log.jsonl") as server:
        assert "with checkpoints there, back (" in server.announcement
        with server.client() as client:
            languages = client.get("/languages").json()
            assert {one["code"]: one["targets"] for one in languages} == {
                "en": ["zh-Hans"],
                "zh-Hans": ["en"],
            }
            wrong = {"q": ENGLISH, "source": "en", "target": "fr"}
            assert client.post("/translate", json=wrong).status_code == 400
        expected = [_offline(there, ENGLISH), _offline(back, CHINESE)]
        with ThreadPoolExecutor(8) as threads:
            requests = [(ENGLISH, "zh"), (CHINESE, "en")] * 20
            replies = list(threads.map(lambda one: _translate(server, *one), requests))
        assert [reply.json()["translatedText"] for reply in replies] == expected * 20
        metrics = server.metrics()
        assert metrics["dragoman_finished_segments_total"] == 40
        for pair, name in (("en>zh-Hans", "there"), ("zh-Hans>en", "back")):
            of_pair = f"{{checkpoint={name},pair={pair}}}"
            assert metrics[f"dragoman_finished_segments_total{of_pair}"] == 20
            assert metrics[f"dragoman_source_characters_count{of_pair}"] == 20
        assert metrics["dragoman_max_rows"] == 2 * 128
        info = [name for name in metrics if name.startswith("dragoman_info{")]
        assert len(info) == 2


def test_a_reload_finds_a_checkpoint_that_was_added(tmp_path: Path) -> None:
    folder, log = tmp_path / "checkpoints", tmp_path / "log.jsonl"
    folder.mkdir()
    write_tiny_checkpoint(folder / "en-zh", name="there", pairs=(EN_ZH,))
    with running_server(folder, log) as server:
        assert _translate(server, CHINESE, "en").status_code == 400
        back = write_tiny_checkpoint(folder / "zh-en", name="back", pairs=(ZH_EN,), seed=6)
        server.signal(signal.SIGHUP)
        _wait_logged(log, "reloaded")
        assert _translate(server, CHINESE, "en").json()["translatedText"] == _offline(back, CHINESE)
        of_pair = "{checkpoint=back,pair=zh-Hans>en}"
        assert server.metrics()[f"dragoman_finished_segments_total{of_pair}"] == 1


def test_a_sighup_while_a_reload_runs_is_followed_by_another_reload(tmp_path: Path) -> None:
    folder, log = tmp_path / "checkpoints", tmp_path / "log.jsonl"
    folder.mkdir()
    write_tiny_checkpoint(folder / "en-zh", name="there", pairs=(EN_ZH,))
    back = write_tiny_checkpoint(tmp_path / "zh-en", name="back", pairs=(ZH_EN,), seed=6)
    with running_server(folder, log) as server:
        server.signal(signal.SIGHUP)
        while len(server.engine_ids()) < 2:
            time.sleep(POLL_SECONDS)
        back.rename(folder / "zh-en")
        server.signal(signal.SIGHUP)
        while log.read_text().count('"event": "reloaded"') < 2:
            time.sleep(POLL_SECONDS)
            assert "reload_refused" not in log.read_text()
        assert _translate(server, CHINESE, "en").status_code == 200


def test_sighup_reads_the_keys_again(tmp_path: Path) -> None:
    checkpoint, log, keys = tmp_path / "tiny", tmp_path / "log.jsonl", tmp_path / "keys"
    _replace(checkpoint, seed=5)
    secrets, lines = zip(*(_new_key(name) for name in ("old", "new")), strict=True)
    keys.write_text(lines[0])
    with running_server(checkpoint, log, DRAGOMAN_API_KEYS_FILE=str(keys)) as server:

        def statuses() -> list[int]:
            body = {"q": ENGLISH, "source": "en", "target": "zh"}
            with server.client() as client:
                return [
                    client.post("/translate", json=body | {"api_key": secret}).status_code
                    for secret in secrets
                ]

        assert statuses() == [200, 403]
        keys.write_text(lines[1])
        server.signal(signal.SIGHUP)
        _wait_logged(log, "reloaded")
        assert statuses() == [403, 200]


def test_a_key_whose_file_an_editor_replaces_is_withdrawn_without_a_signal(
    tmp_path: Path,
) -> None:
    checkpoint, log, keys = tmp_path / "tiny", tmp_path / "log.jsonl", tmp_path / "keys"
    _replace(checkpoint, seed=5)
    keys.mkdir()
    secrets, lines = zip(*(_new_key(name) for name in ("old", "new")), strict=True)
    (keys / "keys.toml").write_text(lines[0])
    with running_server(checkpoint, log, DRAGOMAN_API_KEYS_DIR=str(keys)) as server:

        def status(secret: str) -> int:
            body = {"q": ENGLISH, "source": "en", "target": "zh", "api_key": secret}
            with server.client() as client:
                return client.post("/translate", json=body).status_code

        assert [status(secret) for secret in secrets] == [200, 403]
        (keys / ".saved").write_text(lines[1])
        (keys / ".saved").rename(keys / "keys.toml")
        _wait_logged(log, "keys_read")
        assert [status(secret) for secret in secrets] == [403, 200]
        assert '"added": ["new"], "withdrawn": ["old"]' in log.read_text()
        (keys / "keys.toml").write_text("nonsense")
        _wait_logged(log, "keys_refused")
        assert [status(secret) for secret in secrets] == [403, 200]
        metrics = server.metrics()
        assert metrics["dragoman_reloads_total{kind=keys,result=success}"] == 1
        assert metrics["dragoman_reloads_total{kind=keys,result=failure}"] == 1
        assert metrics["dragoman_reload_successful{kind=keys}"] == 0


def _new_key(name: str) -> tuple[str, str]:
    secret, digest = new_key()
    return secret, ApiKey(name=name, sha256=digest).line()
