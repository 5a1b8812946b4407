"""Work that clients give a real server: much of it at once, or for as long as a block lasts."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from support.running_server import POLL_SECONDS, RunningServer

Replies = list[tuple[str, httpx.Response]]

TEXTS = [f"The cat number {number} sees the river." for number in range(12)]

# One slot and float32 make a small network slow: accepted work takes seconds, not milliseconds.
SLOW = {
    "DRAGOMAN_MAX_SLOTS": "1",
    "DRAGOMAN_MAX_ROWS": "16",
    "DRAGOMAN_COMPUTE_TYPE": "float32",
}
MANY = [f"The cat number {number} sees the river and paints a letter." for number in range(12)]


def translate(client: httpx.Client, text: str) -> httpx.Response:
    """One search of the text: with a cap nothing is tried again.

    A further round that is lost with its engine leaves the answer of the round before, which is
    right too, and another one.
    """
    body = {"texts": text, "source": "en", "target": "zh-Hans", "max_length": 24}
    return client.post("/v1/translate", json=body)


def translate_many(server: RunningServer) -> httpx.Response:
    """Many texts in one request, with a wide beam."""
    body = {"texts": MANY, "target": "zh-Hans", "beam_size": 8}
    with server.client() as client:
        return client.post("/v1/translate", json=body)


@contextmanager
def accepted_work(
    server: RunningServer, num_clients: int
) -> Iterator[list[Future[httpx.Response]]]:
    """Clients whose segments are all accepted, and not all answered."""
    with ThreadPoolExecutor(num_clients) as threads:
        replies = [threads.submit(translate_many, server) for _ in range(num_clients)]
        server.wait_metric("dragoman_received_segments_total", num_clients * len(MANY))
        yield replies


@contextmanager
def lasting_load(server: RunningServer, num_clients: int) -> Iterator[Replies]:
    """Clients that translate as long as the block lasts; what they were answered."""
    replies: Replies = []
    is_over = threading.Event()

    def work(number: int) -> None:
        with server.client() as client:
            while not is_over.is_set():
                text = TEXTS[(number + len(replies)) % len(TEXTS)]
                replies.append((text, translate(client, text)))

    with ThreadPoolExecutor(num_clients) as threads:
        workers = [threads.submit(work, number) for number in range(num_clients)]
        try:
            yield replies
        finally:
            is_over.set()
        for worker in workers:
            worker.result()


def wait_more(replies: Replies, number: int) -> None:
    """Wait until a load has had so many further answers; pytest's timeout is the bound."""
    wanted = len(replies) + number
    while len(replies) < wanted:
        time.sleep(POLL_SECONDS)


def wait_status(client: httpx.Client, path: str, status: int) -> httpx.Response:
    """Ask until it is answered so; pytest's timeout is the bound."""
    while (reply := client.get(path)).status_code != status:
        time.sleep(POLL_SECONDS)
    return reply
