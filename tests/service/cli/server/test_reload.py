"""`dragoman reload` against several real servers, one a loopback address."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from service.access.keys import ApiKey, new_key
from service.cli.main import main
from service.cli.server.fleet import (
    Fleet,
    FleetError,
    LookupFailedError,
    Outcome,
    _outcome,
    addresses_of,
    common_problem,
)
from support.running_server import ROOT, RunningServer, free_port, starting_server
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

HOSTS = ("127.0.0.2", "127.0.0.3")
KEY, DIGEST = new_key()
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints that all servers serve, and the administrator's key."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "served").mkdir()
    write_tiny_checkpoint(folder / "served" / "there", name="there", pairs=(EN_ZH,))
    (folder / "key").write_text(f"{KEY}\n")
    return folder


@contextmanager
def server(folder: Path, host: str, port: int) -> Iterator[RunningServer]:
    line = ApiKey(name="boss", sha256=DIGEST, is_admin=True).line()
    flags = ("--host", host, "--port", str(port))
    log = folder / f"log-{host}"
    with starting_server(folder / "served", log, *flags, DRAGOMAN_API_KEYS=line) as started:
        yield started


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """The port of a server on each of the addresses."""
    port = free_port()
    with ExitStack() as stack:
        servers = [stack.enter_context(server(folder, host, port)) for host in HOSTS]
        for each in servers:
            each.wait_ready()
        yield port


def command(folder: Path, port: int, *hosts: str) -> list[str]:
    flags = ["--port", str(port), "--key-file", str(folder / "key"), "--timeout", "60"]
    return ["reload", *(word for host in hosts for word in ("--service", host)), *flags]


def test_every_server_is_reloaded_and_each_says_what_it_serves(
    folder: Path, port: int, capsys: Output
) -> None:
    back = write_tiny_checkpoint(folder / "served" / "back", name="back", pairs=(ZH_EN,), seed=6)
    assert main(command(folder, port, *HOSTS)) == 0
    assert capsys.readouterr().out == "".join(f"{host}: reloaded: back, there\n" for host in HOSTS)
    weights = bytearray((back / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (back / "model.safetensors").write_bytes(weights)
    assert main(command(folder, port, *HOSTS)) == 1
    shown = capsys.readouterr()
    for line, host in zip(shown.out.splitlines(), HOSTS, strict=True):
        assert line.startswith(f"{host}: reloaded: ")
        assert "; FAULTY: back: " in line
    assert shown.err == "dragoman: 2 of 2 servers do not serve the new checkpoints\n"


def test_one_name_means_all_of_its_addresses(folder: Path, port: int, tmp_path: Path) -> None:
    """In a mount namespace of its own, whose /etc/hosts has the name."""
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host} fleet.test\n" for host in HOSTS))
    private = ["unshare", "--mount", "sh", "-c", f"mount --bind {hosts} /etc/hosts && exec $0 $@"]
    if subprocess.run([*private, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a mount namespace")
    flags = [*command(folder, port, "fleet.test"), "--at-once", "2"]
    done = subprocess.run(
        [*private, sys.executable, "-m", "service.cli.main", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = sorted(done.stdout.splitlines())
    assert [line.partition(": reloaded: ")[0] for line in lines] == list(HOSTS), done.stderr


def test_who_starts_is_asked_again_who_comes_is_asked_too_and_who_is_gone_is_told(
    folder: Path, port: int
) -> None:
    starts, gone = "127.0.0.4", "127.0.0.5"
    num_looks = 0

    def resolve(_: Sequence[str]) -> list[str]:
        """After the first look one address has gone, and another one has come."""
        nonlocal num_looks
        num_looks += 1
        return [HOSTS[0], starts, gone if num_looks == 1 else HOSTS[1]]

    fleet = Fleet(names=("fleet",), port=port, key=KEY, seconds=60, resolve=resolve)
    with server(folder, starts, port):  # not waited for
        outcomes = list(fleet.reload(at_once=3))
    assert sorted(one.address for one in outcomes) == [*HOSTS, starts, gone]
    assert outcomes[-1].address == HOSTS[1]
    left = Outcome(address=gone, has_left=True)
    assert [one for one in outcomes if one.checkpoints is None] == [left]


def test_who_does_not_answer_in_time_is_named(folder: Path, port: int, capsys: Output) -> None:
    assert main([*command(folder, port, "127.0.0.9"), "--timeout", "0.5"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "127.0.0.9: NOT reloaded: [Errno 111] Connection refused\n"
    assert shown.err == "dragoman: 1 of 1 servers do not serve the new checkpoints\n"


def test_a_wrong_key_is_told_for_every_server(folder: Path, port: int, capsys: Output) -> None:
    (folder / "wrong").write_text(new_key()[0])
    flags = ["--key-file", str(folder / "wrong")]
    assert main([*command(folder, port, *HOSTS), *flags]) == 1
    assert capsys.readouterr().out.count("NOT reloaded: status 403: ") == 2


def test_names_without_an_address_and_keys_that_are_none_are_refused(
    folder: Path, capsys: Output, tmp_path: Path
) -> None:
    assert addresses_of(["nothing.invalid", "127.0.0.1", "127.0.0.1"]) == ["127.0.0.1"]
    with pytest.raises(FleetError, match=r"^there is no address of nothing\.invalid$"):
        list(Fleet(names=("nothing.invalid",), port=1, key=KEY, seconds=1).reload(at_once=1))
    for name, content in (("empty", b" \n"), ("two", b"one two"), ("bytes", b"\xff\xfe")):
        file = tmp_path / name
        file.write_bytes(content)
        assert main([*command(folder, 1, "127.0.0.1"), "--key-file", str(file)]) == 1
        assert f"{file} holds no API key" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_no_key_on_standard_input_either(
    folder: Path, capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    with (tmp_path / "bytes").open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert main([*command(folder, 1, "127.0.0.1"), "--key-file", "-"]) == 1
    assert "standard input holds no API key" in capsys.readouterr().err


def failing_lookup(code: int) -> Callable[..., object]:
    """A look-up of names that ends with an error."""

    def fail(*_: object, **__: object) -> object:
        raise socket.gaierror(code, "no answer")

    return fail


@pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_NODATA])
def test_a_name_of_which_it_is_known_that_it_has_no_address_has_none(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", failing_lookup(code))
    assert addresses_of(["fleet"]) == []


@pytest.mark.parametrize("code", [socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_SYSTEM])
def test_a_look_up_that_fails_is_no_name_without_an_address(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", failing_lookup(code))
    with pytest.raises(LookupFailedError, match="the addresses of fleet are not known: no answer"):
        addresses_of(["fleet"])


class Names:
    """Answers to look-ups, one after the other and the last one for ever, and their clock.

    Args:
        answers: Addresses; None for a look-up that fails.
    """

    def __init__(self, *answers: list[str] | None) -> None:
        self.now = 0.0
        self._answers = list(answers)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def resolve(self, _: Sequence[str]) -> list[str]:
        """The next answer."""
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise LookupFailedError("the addresses of fleet are not known")
        return answer

    def fleet(self, port: int) -> Fleet:
        """Servers at these names, each with three seconds."""
        return Fleet(
            names=("fleet",),
            port=port,
            key=KEY,
            seconds=3,
            resolve=self.resolve,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_a_server_that_cannot_be_looked_up_has_not_left_but_is_asked_until_its_time_is_over() -> (
    None
):
    names = Names(["127.0.0.9"], None, None, None, None, ["127.0.0.9"])
    (outcome,) = names.fleet(free_port()).reload(at_once=1)
    assert (outcome.is_good, outcome.has_left) == (False, False)
    assert "Connection refused" in outcome.problem
    assert names.now == 3


def test_look_ups_that_fail_for_a_moment_are_done_again(port: int) -> None:
    names = Names(None, [HOSTS[0]], None, None, [*HOSTS])
    outcomes = list(names.fleet(port).reload(at_once=1))
    assert [one.address for one in outcomes] == [*HOSTS]
    assert names.now == 3


def test_a_reload_does_not_end_well_where_nobody_says_who_has_come_meanwhile(port: int) -> None:
    names = Names([HOSTS[0]], None)
    found = names.fleet(port).reload(at_once=1)
    assert next(found).address == HOSTS[0]
    with pytest.raises(LookupFailedError):
        next(found)
    assert names.now == 3


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--port", "0"], "--port is 0; it must be from 1 to 65535"),
        (["--at-once", "65"], "--at-once is 65; it must be from 1 to 64"),
        (["--timeout", "nan"], "--timeout is nan; it must be above 0, and at most 86400"),
    ],
)
def test_impossible_flags_are_named(
    flags: list[str], words: str, folder: Path, capsys: Output
) -> None:
    assert main([*command(folder, 8000, "127.0.0.1"), *flags]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "expected", "is_final"),
    [
        (503, b'{"code": "booting", "error": "it starts"}', "status 503: it starts", False),
        (409, b'{"code": "reload_running", "error": "busy"}', "status 409: busy", False),
        (409, b'{"code": "reload_failed", "error": "bad\\n"}', "status 409: bad\\n", True),
        (200, b"<html>", "status 200, and not the answer of this server", True),
        (404, b"[]", "status 404, and not the answer of this server", True),
    ],
)
def test_an_answer_is_final_unless_waiting_may_change_it(
    status: int, body: bytes, expected: str, is_final: bool
) -> None:
    assert _outcome("::1", status, body) == (Outcome(address="::1", problem=expected), is_final)


def test_a_server_that_drains_need_not_be_reloaded() -> None:
    outcome, is_final = _outcome("::1", 503, b'{"code": "draining", "error": "it leaves"}')
    assert (outcome.is_good, outcome.has_left, is_final) == (True, True, True)


def test_servers_that_serve_different_checkpoints_are_a_problem_and_one_that_left_is_none() -> None:
    one = Outcome(address="a", checkpoints=("x", "y"))
    gone = Outcome(address="b", has_left=True)
    assert common_problem([one, gone, Outcome(address="c", checkpoints=("y", "x"))]) == ""
    other = Outcome(address="d", checkpoints=("x",))
    assert common_problem([one, gone, other]) == "the servers have different checkpoints"
    old = Outcome(address="e", problem="status 409: busy")
    assert common_problem([old, other]).startswith("1 of 2 servers do not serve")
