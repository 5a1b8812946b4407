"""`python -m benchmarks.fuzz`: ten thousand generated requests, none of which breaks anything.

No 500, no 503 or 504 without a reason, no hang. Starts `dragoman serve` on a free loopback port
with a tiny checkpoint, unless --url names a server with default limits and the one pair
en → zh-Hans. Generators are the tests': PYTHONPATH must hold `tests`.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from support.fuzzing import MODES, OTHER_ROUTES, TEXT_ROUTES, Fuzzer
from support.running_server import running_server
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


def main() -> int:
    """Send, count, report; an answer that breaks the rules raises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that is already running")
    parser.add_argument("--requests", type=int, default=10_000)
    arguments = parser.parse_args()
    started = time.perf_counter()
    with ExitStack() as stack:
        url = arguments.url
        if url is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            checkpoint = write_tiny_checkpoint(folder / "tiny", pairs=(EN_ZH,))
            url = stack.enter_context(running_server(checkpoint, folder / "log.jsonl")).url
        fuzzer = Fuzzer(url)
        share = round(arguments.requests * 0.16)
        for path in TEXT_ROUTES:
            for mode in MODES:
                fuzzer.send_documented(path, "POST", mode, share)
                _report(fuzzer, f"{mode.value} {path}", started)
            fuzzer.send_texts(path, share)
            _report(fuzzer, f"texts {path}", started)
        for path in OTHER_ROUTES:
            fuzzer.send_documented(path, "GET", MODES[0], 5)
        for path in TEXT_ROUTES:
            # Whatever generators stopped short of, texts make up for.
            missing = arguments.requests - fuzzer.statuses.total()
            fuzzer.send_texts(path, missing // (2 if path == TEXT_ROUTES[0] else 1))
        _report(fuzzer, "all", started)
    return 0 if fuzzer.statuses.total() >= arguments.requests else 1


def _report(fuzzer: Fuzzer, name: str, started: float) -> None:
    statuses = dict(sorted(fuzzer.statuses.items()))
    seconds = time.perf_counter() - started
    print(f"{name}: {fuzzer.statuses.total()} requests, {statuses}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
