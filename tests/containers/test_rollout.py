"""A rollout of the Deployment, with the kubelet's and the Service's part played here.

Two real containers, as the manifest runs them, and the manifest's own wait before the stop. The
list of endpoints is kept by hand: the new pod is added when the readiness probe's path first gives
200, the old one removed a fixed time after its wait has begun, which stands for what a change of
endpoints takes to reach every node. Not played: the probe's period and thresholds,
`minReadySeconds`, and what a cluster adds (its network, its scheduler).
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

import httpx

from support.containers import Container, serving
from support.pods import SPEC, manifest_environment, manifest_flags

# How long other nodes go on sending to a pod that is being stopped.
PROPAGATION_SECONDS = 3.0
NUM_CLIENTS = 4
PROBE = SPEC["readinessProbe"]


@dataclass(slots=True)
class Endpoints:
    """Where the Service sends to; safe to use from several threads."""

    _pods: list[Container] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _turn: int = 0

    def add(self, pod: Container) -> None:
        with self._lock:
            self._pods.append(pod)

    def remove(self, pod: Container) -> None:
        with self._lock:
            self._pods.remove(pod)

    def choose(self) -> Container:
        with self._lock:
            self._turn += 1
            return self._pods[self._turn % len(self._pods)]


@contextmanager
def _clients(endpoints: Endpoints) -> Iterator[dict[int, int]]:
    """Translate without a pause until left; yields answers by status, 0 for none at all."""
    is_over, counts, lock = Event(), dict[int, int](), Lock()

    def work() -> None:
        while not is_over.is_set():
            body = {"q": "Two dogs run over the grass.", "source": "en", "target": "zh"}
            url = f"{endpoints.choose().url}/translate"
            try:
                status = httpx.post(url, json=body, timeout=60.0, trust_env=False).status_code
            except httpx.TransportError:
                status = 0
            with lock:
                counts[status] = counts.get(status, 0) + 1

    with ThreadPoolExecutor(NUM_CLIENTS) as threads:
        running = [threads.submit(work) for _ in range(NUM_CLIENTS)]
        try:
            yield counts
        finally:
            is_over.set()
        for each in running:
            each.result()


def _terminate(pod: Container, endpoints: Endpoints) -> int:
    """What happens to a pod that is deleted; its exit status."""
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pod.execute, *SPEC["lifecycle"]["preStop"]["exec"]["command"])
        time.sleep(PROPAGATION_SECONDS)
        assert not waiting.done(), "the wait before the stop must outlast the propagation"
        endpoints.remove(pod)
        waiting.result()
    pod.send_sigterm()
    return pod.wait()


def test_no_request_fails_while_a_new_pod_takes_an_old_ones_place(image: str) -> None:
    flags, environment = manifest_flags(), manifest_environment()
    endpoints = Endpoints()
    with ExitStack() as pods:
        old = pods.enter_context(serving(image, *flags, **environment))
        old.wait_status(PROBE["httpGet"]["path"], 200)
        endpoints.add(old)
        with _clients(endpoints) as counts:
            new = pods.enter_context(serving(image, *flags, **environment))
            new.wait_status(PROBE["httpGet"]["path"], 200)
            endpoints.add(new)
            assert _terminate(old, endpoints) == 0
            assert old.status("/readyz") is None
            while_old_left = sum(counts.values())
            while sum(counts.values()) < while_old_left + 2 * NUM_CLIENTS:
                time.sleep(0.1)
    assert counts.keys() == {200}, counts
