"""`python -m benchmarks.uploads`: does the event loop stay free while large documents arrive?

Starts `dragoman serve` on a free loopback port, unless --url names one. A few clients ask for short
translations all the time, first by themselves, then, for each kind of document, while others upload
documents as large as the server takes, wait until each is read, and take it back. Writes
benchmarks/results/uploads-<time>.json with the latency of the short ones and the event loop's lag
(`dragoman_event_loop_lag_seconds`). Leaves with 1 if a short request failed, no document was read,
or the lag's p99 is 25 ms or more. Uploads and clients share the cores with the server.
"""

import argparse
import asyncio
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.load import Client, run_level
from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from benchmarks.served import (
    LAG,
    MAX_LAG_SECONDS,
    SENTENCES,
    Measured,
    histogram_quantile,
    percentile,
    read_samples,
    serving,
)

ALONE = "none"
_NUM_CHARACTERS = 900_000
_PIECE = 2**16
_SECONDS_BETWEEN_QUESTIONS = 0.5
_MAX_QUESTIONS = 240


def text_file(num_bytes: int) -> bytes:
    """Lines of text: more characters than a document may have, which is found out by reading it."""
    line = b"The quick brown fox jumps over the lazy dog.\n"
    return (line * (num_bytes // len(line) + 1))[:num_bytes]


def page(num_bytes: int) -> bytes:
    """A page of paragraphs, most of which are tags and attributes."""
    text = "The quick brown fox jumps over the lazy dog."
    num_paragraphs = _NUM_CHARACTERS // len(text)
    padding = num_bytes // num_paragraphs - len(f'<p class=""><b>{text}</b></p>\n')
    paragraph = f'<p class="{"x" * max(padding, 1)}"><b>{text}</b></p>\n'
    return (paragraph * num_paragraphs).encode()[:num_bytes]


def office_file(num_bytes: int) -> bytes:
    """A document of Word with a large picture, which is stored as it is."""
    words = "<w:p><w:r><w:t>The quick brown fox jumps over the lazy dog.</w:t></w:r></w:p>" * 5000
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{namespace}"><w:body>{words}</w:body></w:document>'
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override'
        ' PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument'
        '.wordprocessingml.document.main+xml"/></Types>'
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("[Content_Types].xml", types, zipfile.ZIP_DEFLATED)
        archive.writestr("word/document.xml", document, zipfile.ZIP_DEFLATED)
        archive.writestr("word/media/image1.png", bytes(num_bytes - 2**16))
    return packed.getvalue()


KINDS: Mapping[str, Callable[[int], bytes]] = {
    "txt": text_file,
    "html": page,
    "docx": office_file,
}


@dataclass(slots=True, kw_only=True)
class Uploads:
    """What became of documents.

    Attributes:
        num_bytes: Of those that were sent.
        num_sent: Accepted with a 202.
        num_read: Of these, read or refused by what is in them.
        num_refused: Not accepted.
    """

    num_bytes: int = 0
    num_sent: int = 0
    num_read: int = 0
    num_refused: int = 0


class Uploader(Client):
    """One connection that uploads documents."""

    async def upload(self, name: str, content: bytes) -> tuple[int, str]:
        """Status and the job's id, or why there is none."""
        streams = await self.opened()
        head = (
            f"POST /v1/documents?source=en&target={self.target}&name={name} HTTP/1.1\r\n"
            f"host: {self.host}\r\ncontent-type: application/octet-stream\r\n"
            f"content-length: {len(content)}\r\n\r\n"
        )
        streams[1].write(head.encode())
        for start in range(0, len(content), _PIECE):
            streams[1].write(content[start : start + _PIECE])
            await streams[1].drain()
        status, reply = await self.reply()
        return status, str(json.loads(reply).get("id", reply.decode()))

    async def is_read(self, job_id: str) -> bool:
        """Whether the server has come to know what is in a document."""
        status, reply = await self.exchange(
            f"GET /v1/documents/{job_id} HTTP/1.1\r\nhost: {self.host}\r\n\r\n".encode()
        )
        job = json.loads(reply)
        return status != 200 or job["state"] in ("done", "failed") or job["num_characters"] > 0

    async def take_back(self, job_id: str) -> None:
        """Delete a document."""
        await self.exchange(
            f"DELETE /v1/documents/{job_id} HTTP/1.1\r\nhost: {self.host}\r\n\r\n".encode()
        )


async def keep_uploading(
    url: str, kind: str, content: bytes, uploads: Uploads, *, target: str
) -> None:
    """One document after another, until cancelled; then nothing of them is left."""
    uploader, job_id = Uploader(url, target=target), ""
    try:
        while True:
            status, reply = await uploader.upload(f"large.{kind}", content)
            if status != 202:
                uploads.num_refused += 1
                await asyncio.sleep(_SECONDS_BETWEEN_QUESTIONS)
                continue
            job_id = reply
            uploads.num_sent += 1
            uploads.num_bytes += len(content)
            for _ in range(_MAX_QUESTIONS):
                if await uploader.is_read(job_id):
                    uploads.num_read += 1
                    break
                await asyncio.sleep(_SECONDS_BETWEEN_QUESTIONS)
            await uploader.take_back(job_id)
            job_id = ""
    finally:
        await uploader.close()  # an answer may be on its way
        if job_id:
            await uploader.take_back(job_id)
            await uploader.close()


async def measure(url: str, kind: str, arguments: argparse.Namespace) -> Measured:
    """Short translations for a while, beside documents of a kind or none."""
    texts = SENTENCES.read_text(encoding="utf-8").splitlines()
    uploads = Uploads()
    content = b"" if kind == ALONE else KINDS[kind](arguments.bytes)
    tasks = [
        asyncio.create_task(keep_uploading(url, kind, content, uploads, target=arguments.target))
        for _ in range(0 if kind == ALONE else arguments.uploaders)
    ]
    before, started = await read_samples(url), time.perf_counter()
    level = await run_level(
        url,
        texts,
        num_clients=arguments.clients,
        seconds=arguments.seconds,
        max_requests=1_000_000,
    )
    after, seconds = await read_samples(url), time.perf_counter() - started
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [error for error in ended if isinstance(error, Exception)]
    for failure in failures:
        raise failure
    return {
        "documents": kind,
        "bytes_each": len(content),
        "num_sent": uploads.num_sent,
        "num_read": uploads.num_read,
        "num_refused": uploads.num_refused,
        "megabytes_per_second": round(uploads.num_bytes / 1e6 / seconds, 1),
        "num_clients": level.num_clients,
        "num_requests": level.statuses.total(),
        "num_errors": level.statuses.total() - level.statuses[200],
        "sentences_per_second": round(level.statuses[200] / level.wall_seconds, 1),
        "latency_seconds": {
            f"p{share}": round(percentile(level.latencies_seconds, share), 4)
            for share in (50, 95, 99)
        },
        "event_loop_lag_below_seconds": {
            f"p{100 * share:g}": histogram_quantile(before, after, LAG, share)
            for share in (0.5, 0.95, 0.99, 0.999, 1.0)
        },
    }


def missed_marks(rows: Sequence[Measured]) -> list[str]:
    """What a good build would have done better."""
    missed = []
    for row in rows:
        name, lag = row["documents"], row["event_loop_lag_below_seconds"]["p99"]
        if row["num_errors"]:
            missed.append(f"{name}: {row['num_errors']} short requests failed")
        if name != ALONE and not row["num_read"]:
            missed.append(f"{name}: no document was read")
        if lag > MAX_LAG_SECONDS:
            missed.append(f"{name}: event-loop lag p99 up to {lag} s")
    return missed


def table(rows: Sequence[Measured]) -> str:
    """All rows in Markdown."""
    lines = [
        "| documents | sent, read | MB/s | lag p50 | p99 | p99.9 | most | short p50 | p99 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lag, latency = row["event_loop_lag_below_seconds"], row["latency_seconds"]
        lags = " | ".join(f"< {1000 * lag[name]:g} ms" for name in ("p50", "p99", "p99.9", "p100"))
        shorts = " | ".join(f"{1000 * latency[name]:.0f} ms" for name in ("p50", "p99"))
        lines.append(
            f"| {row['documents']} | {row['num_sent']}, {row['num_read']}"
            f" | {row['megabytes_per_second']} | {lags} | {shorts} |"
        )
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a server that is already running, on loopback")
    parser.add_argument("--checkpoint", help="checkpoint to serve (the bundled ones)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="cpu")
    parser.add_argument("--kinds", nargs="+", choices=(ALONE, *KINDS), default=(ALONE, *KINDS))
    parser.add_argument("--target", default="zh", help="of documents (%(default)s)")
    parser.add_argument("--bytes", type=int, default=20 * 2**20 - 2**17, help="of a document")
    parser.add_argument("--uploaders", type=int, default=2, help="at once (%(default)s)")
    parser.add_argument("--clients", type=int, default=2, help="short requests at once")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each kind")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> int:
    """Measure, write, judge."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    rows = []
    with serving(arguments) as url:
        texts = SENTENCES.read_text(encoding="utf-8").splitlines()
        asyncio.run(run_level(url, texts[-20:], num_clients=4, seconds=5.0, max_requests=20))
        for kind in arguments.kinds:
            rows.append(asyncio.run(measure(url, kind, arguments)))
            print(json.dumps(rows[-1]))
    missed = missed_marks(rows)
    report = {
        "benchmark": "uploads",
        "command": describe_command("benchmarks.uploads", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "rows": rows,
        "missed_marks": missed,
    }
    path = write_result(arguments.results, "uploads", started, report)
    print(f"\n{table(rows)}\n\n{path}")
    print("\n".join(f"missed: {words}" for words in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
