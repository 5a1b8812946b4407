"""Outputs of a server of each checkout: whole bodies of `POST /v1/translate`.

Owns what is asked. Nothing that is compared may depend on time, so requests go out one by one, and
a server encodes no more at once than it may however slow the machine is.
"""

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.same_outputs.compared import Compared, Deadline, Plan, at_once, compared
from benchmarks.soak.server import serving

BODIES: Mapping[str, Mapping[str, object]] = {
    "greedy": {"beam_size": 1, "scores": True, "alignment": True},
    "beam 4": {"beam_size": 4, "scores": True, "alternatives": 3},
}
ADMIT_TOKENS = 64  # the floor of the budget that follows the clock, `service.engine.worker.pacing`
REPLY_SECONDS = 120.0


def compare_servers(plan: Plan, deadline: Deadline) -> Iterator[Compared]:
    """Both servers with all their checkpoints, an arithmetic at a time."""
    for compute_type in plan.compute_types:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            urls = [
                stack.enter_context(
                    serving(
                        folder / f"{number}.jsonl",
                        checkpoint=checkout / "checkpoints",
                        checkout=checkout,
                        compute_type=compute_type,
                        num_threads=plan.num_threads,
                        admit_token_budget=ADMIT_TOKENS,
                    )
                ).url
                for number, checkout in enumerate(plan.checkouts)
            ]
            for direction in plan.directions:
                pair = {"source": direction.source, "target": direction.target}
                for search, options in BODIES.items():
                    bodies = [
                        {"texts": line, **pair, **options}
                        for line in plan.lines[direction.language]
                    ]
                    outputs = at_once([partial(ask, url, bodies, deadline) for url in urls])
                    yield compared("http", direction, compute_type, search, outputs)


def ask(url: str, bodies: Sequence[Mapping[str, object]], deadline: Deadline) -> list[bytes]:
    """The body of each answer.

    Raises:
        SystemExit: An answer is no translation, or the time is over.
    """
    connection = http.client.HTTPConnection(
        url.removeprefix("http://").rstrip("/"), timeout=REPLY_SECONDS
    )
    found = []
    try:
        for body in bodies:
            deadline.seconds_left()
            headers = {"content-type": "application/json"}
            connection.request("POST", "/v1/translate", json.dumps(body), headers)
            with connection.getresponse() as reply:
                content = reply.read()
            if reply.status != http.client.OK:
                raise SystemExit(f"{url} answered {reply.status}: {content.decode()}")
            found.append(content)
    finally:
        connection.close()
    return found
