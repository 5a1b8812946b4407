"""A real server with two fronts on one port: what holds over both, what a lost one costs."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from support.running_server import POLL_SECONDS, RunningServer, running_server, starting_server
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

TEXTS = [f"The cat number {number} sees the river." for number in range(12)]
KEY = "a-key-of-more-than-22-characters"
BEARER = {"authorization": f"Bearer {KEY}"}
KEYS = {
    "DRAGOMAN_API_KEYS": f'ann = {{ sha256 = "{sha256(KEY.encode()).hexdigest()}", admin = true }}'
}
TWO = {
    "DRAGOMAN_FRONTS": "2",
    "DRAGOMAN_RESTART_WINDOW_SECONDS": "0.001",
    "DRAGOMAN_DETECTION": "off",
}


def _translate(client: httpx.Client, text: str) -> httpx.Response:
    return client.post("/translate", json={"q": text, "source": "en", "target": "zh"})


def _wait(is_so: Callable[[], bool]) -> None:
    """Ask until it is so; pytest's timeout is the bound."""
    while not is_so():
        time.sleep(POLL_SECONDS)


def _command(number: int) -> str:
    return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")


def _fronts(server: RunningServer) -> list[int]:
    return [one for one in server.engine_ids() if "service.fronts" in _command(one)]


def _engine(server: RunningServer) -> int:
    [found] = [one for one in server.engine_ids() if "engine.worker" in _command(one)]
    return found


def _wait_fronts(server: RunningServer, number: int = 2) -> None:
    _wait(lambda: server.metrics()["dragoman_fronts"] == number)


@contextmanager
def _two_fronts(
    checkpoint: Path, log: Path, *flags: str, **environment: str
) -> Iterator[RunningServer]:
    """A server of which both fronts answer."""
    with running_server(checkpoint, log, *flags, **(TWO | environment)) as server:
        _wait_fronts(server)
        yield server


@contextmanager
def _stopped(*numbers: int) -> Iterator[None]:
    for number in numbers:
        os.kill(number, signal.SIGSTOP)
    try:
        yield
    finally:
        for number in numbers:
            os.kill(number, signal.SIGCONT)


@contextmanager
def _clients_of_each(server: RunningServer, number: int) -> Iterator[list[httpx.Client]]:
    """So many clients of each front, connected: those of the first one, then the others."""
    fronts = _fronts(server)
    with ExitStack() as stack:
        clients = []
        for front in fronts:
            with _stopped(*(other for other in fronts if other != front)):
                for _ in range(number):
                    client = stack.enter_context(server.client())
                    assert _translate(client, TEXTS[0]).status_code == 200
                    clients.append(client)
        yield clients


def _num_answered(server: RunningServer, route: str = "/translate", status: int = 200) -> float:
    return server.metrics().get(f"dragoman_requests_total{{route={route},status={status}}}", 0.0)


def test_fronts_answer_translations_and_pass_everything_else_on(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with _two_fronts(served_checkpoint, tmp_path / "log.jsonl") as server:
        before = _num_answered(server)
        with _clients_of_each(server, 2) as clients:
            answers = {_translate(client, TEXTS[1]).json()["translatedText"] for client in clients}
            assert len(answers) == 1
            for client in clients:  # by one connection each, there and back
                assert client.get("/languages").status_code == 200
                assert client.get("/v1/health").json()["status"] == "ok"
                assert _translate(client, TEXTS[1]).json()["translatedText"] in answers
                assert client.get("/nothing").status_code == 404
                assert _translate(client, TEXTS[1]).status_code == 200
                wrong = client.post("/translate", json={"q": "a", "source": "en", "target": "xx"})
                assert wrong.status_code == 400
        assert _num_answered(server) - before == 4 + 4 + 8
        assert _num_answered(server, status=400) == 4
        metrics = server.metrics()
        assert metrics["dragoman_max_fronts"] == 2
        assert metrics["dragoman_requests_in_progress"] == 1  # the one that asks
        finished = metrics["dragoman_finished_segments_total"]
        assert finished == metrics["dragoman_received_segments_total"] >= _num_answered(server)


def test_it_is_ready_when_every_front_answers(served_checkpoint: Path, tmp_path: Path) -> None:
    with starting_server(served_checkpoint, tmp_path / "log.jsonl", **TWO) as server:
        server.wait_listening()
        while not (fronts := _fronts(server)):
            time.sleep(POLL_SECONDS)
        with _stopped(fronts[0]), server.client() as client:
            _wait(lambda: server.metrics()["dragoman_fronts"] == 1)
            assert client.get("/readyz").json()["code"] == "booting"
        server.wait_ready()
        assert server.metrics()["dragoman_fronts"] == 2


def test_a_request_limit_is_one_over_all_fronts(served_checkpoint: Path, tmp_path: Path) -> None:
    limit = {"DRAGOMAN_REQUESTS_PER_MINUTE": "20"}
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl", **limit) as server,
        _clients_of_each(server, 4) as clients,  # eight requests
        ThreadPoolExecutor(len(clients)) as threads,
    ):
        asked = [(client, TEXTS[number]) for client in clients for number in range(5)]
        replies = list(threads.map(lambda one: _translate(*one), asked))
        assert Counter(reply.status_code for reply in replies) == {200: 12, 429: 28}


def test_places_for_requests_are_one_room_over_all_fronts(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    limits = {"DRAGOMAN_MAX_REQUESTS": "3", "DRAGOMAN_RESERVED_SHARE": "0"}
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl", **limits) as server,
        _clients_of_each(server, 4) as clients,
        ThreadPoolExecutor(len(clients)) as threads,
    ):
        own, others = clients[:4], clients[4:]
        with _stopped(_engine(server)):
            asking = (own[0], own[1], others[0])
            held = [threads.submit(_translate, one, TEXTS[2]) for one in asking]
            _wait(lambda: server.metrics()["dragoman_requests_in_work"] == 3)
            for client in (*own[2:], *others[1:]):
                reply = _translate(client, TEXTS[3])
                assert (reply.status_code, reply.json()["code"]) == (429, "overloaded")
                assert reply.json()["limit"] == 3
        assert [one.result().status_code for one in held] == [200, 200, 200]
        assert all(_translate(client, TEXTS[3]).status_code == 200 for client in clients)
        assert server.metrics()["dragoman_requests_in_work"] == 0


def _check_replaced(server: RunningServer, victim: int, other: int, reason: str) -> None:
    """There are two fronts again, the other one among them, and both translate."""
    _wait_fronts(server)
    assert other in _fronts(server)
    assert victim not in _fronts(server)
    assert server.metrics()[f"dragoman_front_restarts_total{{reason={reason}}}"] == 1
    with _clients_of_each(server, 1) as clients:
        assert {_translate(client, TEXTS[8]).status_code for client in clients} == {200}
    assert server.metrics()["dragoman_pending_segments"] == 0


@pytest.mark.replicas
def test_a_front_that_dies_costs_its_own_connections_and_is_replaced(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl") as server,
        _clients_of_each(server, 2) as clients,
        ThreadPoolExecutor(4) as threads,
    ):
        before = _num_answered(server)
        victim, other = _fronts(server)
        with _stopped(_engine(server)):
            mine, others = (threads.submit(_translate, clients[one], TEXTS[4]) for one in (0, 2))
            _wait(lambda: server.metrics()["dragoman_requests_in_work"] == 2)
            os.kill(victim, signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                mine.result()
            _wait(lambda: server.metrics()["dragoman_requests_in_work"] == 1)
        assert others.result().status_code == 200
        with server.client() as client:
            assert [_translate(client, text).status_code for text in TEXTS] == [200] * len(TEXTS)
        assert _num_answered(server) == before + 1 + len(TEXTS), (
            "what the lost one had counted stays"
        )
        _check_replaced(server, victim, other, "exit")


@pytest.mark.replicas
def test_a_front_that_hangs_is_killed_and_replaced_while_the_other_answers(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl", DRAGOMAN_HANG_SECONDS="3") as server,
        _clients_of_each(server, 1) as clients,
        ThreadPoolExecutor(1) as threads,
    ):
        victim, other = _fronts(server)
        os.kill(victim, signal.SIGSTOP)
        mine = threads.submit(_translate, clients[0], TEXTS[4])
        assert _translate(clients[1], TEXTS[5]).status_code == 200
        with pytest.raises(httpx.TransportError):
            mine.result()
        _check_replaced(server, victim, other, "hang")


def test_a_front_that_starts_while_the_keys_have_a_mistake_takes_those_that_hold(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(KEYS["DRAGOMAN_API_KEYS"])
    named = {"DRAGOMAN_API_KEYS_FILE": str(keys)}
    with _two_fronts(served_checkpoint, tmp_path / "log.jsonl", **named) as server:
        victim, other = _fronts(server)
        keys.write_text("a mistake")
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: server.metrics().get("dragoman_front_restarts_total{reason=exit}") == 1)
        _wait_fronts(server)
        with _stopped(other), server.client() as client:
            assert _translate(client, TEXTS[6]).status_code == 401
            client.headers.update(BEARER)
            assert _translate(client, TEXTS[6]).status_code == 200
        assert server.metrics()["dragoman_front_restarts_total{reason=exit}"] == 1


@pytest.mark.replicas
def test_a_reload_under_load_reaches_all_fronts_and_costs_no_request(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with _two_fronts(served_checkpoint, tmp_path / "log.jsonl", **KEYS) as server:
        statuses: list[int] = []
        is_over = threading.Event()

        def work() -> None:
            with server.client() as client:
                client.headers.update(BEARER)
                while not is_over.is_set():
                    statuses.append(_translate(client, TEXTS[len(statuses) % 12]).status_code)

        engine = _engine(server)
        with ThreadPoolExecutor(4) as threads, server.client() as boss:
            for _ in range(4):
                threads.submit(work)
            try:
                boss.headers.update(BEARER)
                assert boss.post("/admin/reload").status_code == 200
                _wait_fronts(server)
                wanted = len(statuses) + 24
                _wait(lambda: len(statuses) > wanted)
            finally:
                is_over.set()
        assert set(statuses) == {200}
        _wait(lambda: engine not in server.engine_ids())


@pytest.mark.replicas
def test_a_front_that_finds_other_files_than_the_owner_passes_on_until_the_next_reload(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,), seed=5)
    public = KEYS | {"DRAGOMAN_KEY_REQUIRED": "false"}
    with _two_fronts(checkpoint, tmp_path / "log.jsonl", **public) as server:
        with server.client() as client:
            old = _translate(client, TEXTS[7]).json()
        write_tiny_checkpoint(checkpoint, pairs=(EN_ZH,), seed=6)
        victim, other = _fronts(server)
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: "front_cannot_follow" in server.log.read_text())
        [behind] = set(_fronts(server)) - {other}
        with _stopped(*(one for one in _fronts(server) if one != behind)):
            with server.client() as client:
                assert _translate(client, TEXTS[7]).json() == old, "the owner has what it read"
            assert server.metrics()["dragoman_fronts"] == 1
        with server.client() as client:
            assert client.post("/admin/reload", headers=BEARER).status_code == 200
        _wait_fronts(server)
        with _clients_of_each(server, 1) as clients:
            new = [_translate(client, TEXTS[7]).json() for client in clients]
        assert new[0] == new[1] != old


def _status_back(server: RunningServer, *stopped: int) -> int:
    """The status of a translation from Chinese, while some fronts accept nothing."""
    with _stopped(*stopped), server.client() as client:
        return client.post(
            "/translate", json={"q": "你好", "source": "zh", "target": "en"}
        ).status_code


@pytest.mark.replicas
def test_fronts_serve_the_last_good_version_of_a_checkpoint_as_long_as_the_owner_does(
    tmp_path: Path,
) -> None:
    (folder := tmp_path / "checkpoints").mkdir()
    write_tiny_checkpoint(folder / "a", name="there", pairs=(EN_ZH,))
    back = write_tiny_checkpoint(folder / "b", name="back", pairs=(ZH_EN,))
    public = KEYS | {"DRAGOMAN_KEY_REQUIRED": "false"}
    with _two_fronts(folder, tmp_path / "log.jsonl", **public) as server:

        def reload() -> None:
            with server.client() as client:
                assert client.post("/admin/reload", headers=BEARER).status_code == 200

        engine = _engine(server)
        (back / "config.json").write_text("{}")
        reload()
        victim, other = _fronts(server)
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: server.metrics().get("dragoman_front_restarts_total{reason=exit}") == 1)
        _wait(lambda: len(_fronts(server)) == 2)
        [late] = set(_fronts(server)) - {other}
        for _ in range(2):
            assert _status_back(server, late) == _status_back(server, other) == 200
            reload()
        assert server.metrics()["dragoman_fronts"] == 1, "the later one passes on"
        os.kill(engine, signal.SIGKILL)
        _wait_fronts(server)
        assert _status_back(server, late) == _status_back(server, other) == 400, "it is lost"


def _ask_deepl(client: httpx.Client, text: str, **values: str) -> httpx.Response:
    asked: dict[str, object] = {"text": [text], "source_lang": "EN", "target_lang": "ZH"}
    return client.post("/v2/translate", json=asked | values, headers=BEARER)


def _usage(server: RunningServer) -> int:
    with server.client() as client:
        number: int = client.get("/v2/usage", headers=BEARER).json()["character_count"]
        return number


def test_glossaries_and_usage_are_the_same_by_every_front(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    public = KEYS | {"DRAGOMAN_KEY_REQUIRED": "false"}
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl", **public) as server,
        _clients_of_each(server, 1) as clients,
    ):
        new = {"name": "n", "source_lang": "en", "target_lang": "zh", "entries_format": "tsv"}
        with server.client() as keeper:
            kept = keeper.post(
                "/v2/glossaries", json=new | {"entries": "Zorbly\tGlorb"}, headers=BEARER
            ).json()
        text = "The Zorbly sees the river."
        for client in clients:
            reply = _ask_deepl(client, text, glossary_id=kept["glossary_id"])
            assert "Glorb" in reply.json()["translations"][0]["text"]
            missing = _ask_deepl(client, text, glossary_id=kept["glossary_id"][::-1])
            assert missing.status_code == 404
        assert _usage(server) == 2 * len(text)


def test_sigterm_finishes_what_any_front_has_accepted(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl") as server,
        _clients_of_each(server, 2) as clients,
        ThreadPoolExecutor(4) as threads,
    ):
        children = server.engine_ids()
        with _stopped(_engine(server)):
            held = [threads.submit(_translate, clients[one], TEXTS[5]) for one in (0, 2)]
            _wait(lambda: server.metrics()["dragoman_requests_in_work"] == 2)
            server.signal(signal.SIGTERM)
            for other in (clients[1], clients[3]):  # a text that came before would wait, too
                while other.get("/readyz").status_code != 503:
                    time.sleep(POLL_SECONDS)
                assert _translate(other, TEXTS[6]).json()["code"] == "draining"
        assert [one.result().status_code for one in held] == [200, 200]
        assert server.wait() == 0
        assert not [one for one in children if Path(f"/proc/{one}").exists()]


def test_on_sigterm_every_new_connection_is_answered_or_refused_and_none_is_reset(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    outcomes: Counter[str] = Counter()

    def knock(server: RunningServer) -> None:
        while True:
            try:
                reply = httpx.get(f"{server.url}/readyz", trust_env=False, timeout=20)
            except httpx.TransportError as error:
                outcomes[type(error).__name__] += 1
                if isinstance(error, httpx.ConnectError):
                    return
            else:
                outcomes[str(reply.status_code)] += 1

    with (
        _two_fronts(served_checkpoint, tmp_path / "log.jsonl") as server,
        ThreadPoolExecutor(4) as threads,
    ):
        knocking = [threads.submit(knock, server) for _ in range(4)]
        _wait(lambda: outcomes["200"] > 20)
        server.signal(signal.SIGTERM)
        for one in knocking:
            one.result()
        assert server.wait() == 0
    assert set(outcomes) <= {"200", "503", "ConnectError"}, outcomes
