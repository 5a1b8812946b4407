"""CTranslate2 behind HTTP with a queue and dynamic batching: what a user would build.

Owns a server for comparison, as good as its pattern allows. As in `dragoman serve` it is uvicorn
with httptools, whose one endpoint is called without a framework's routing; tokenizer and text
pipeline are the same; texts are prepared on a thread, those that are short at once; and the garbage
collector looks for as little. Requests that wait are taken together, as many as fit in a batch; a
batch waits for company only for a short window and only while a worker is free; the network runs in
threads, off the event loop, without the interpreter's lock. What is not here (limits, deadlines,
metrics, cancelling) only makes it faster. A batch ends when its longest sentence ends:
`translate_batch` gives nothing earlier.

    python -m benchmarks.peers.ctranslate2_server MODELS --port 0
"""

import argparse
import asyncio
import gc
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import ctranslate2
import uvicorn
from starlette.types import Receive, Scope, Send

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.pipeline import TextPipeline, target_cap
from service.models.requests.text_work import are_short

_OBJECTS_A_COLLECTION = 10_000
"""As in `service.cli.server.serve`."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What can be tuned.

    Attributes:
        max_batch_size: Segments that are translated together.
        window_seconds: How long a batch that is not full waits for more.
        inter_threads: Batches that run at once.
        intra_threads: Threads of each.
    """

    max_batch_size: int
    window_seconds: float
    inter_threads: int
    intra_threads: int
    compute_type: str = "int8"
    beam_size: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    pieces: list[str]
    cap: int
    found: "asyncio.Future[list[str]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What was found for a segment, as the text pipeline reads it."""

    token_ids: Sequence[int]
    score: float = 0.0
    is_truncated: bool = False
    alignment: None = None


class Batcher:
    """A queue in front of a `ctranslate2.Translator`."""

    def __init__(
        self,
        translator: ctranslate2.Translator,
        settings: ServerSettings,
        suppressed: list[list[str]],
    ) -> None:
        self._translator = translator
        self._settings = settings
        self._suppressed = suppressed
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(settings.inter_threads, thread_name_prefix="batch")

    async def translate(self, pieces: list[str], cap: int) -> list[str]:
        """One segment; `cap` counts EOS."""
        found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Waiting(pieces=pieces, cap=cap, found=found))
        return await found

    async def run(self) -> None:
        """Serve for ever: one task for every batch that may run at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.inter_threads):
                group.create_task(self._serve_batches())

    async def _serve_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._take()
            try:
                found = await loop.run_in_executor(self._threads, self._translate, batch)
            except RuntimeError as error:  # CTranslate2's own
                for waiting in batch:
                    waiting.found.set_exception(error)
                continue
            for waiting, pieces in zip(batch, found, strict=True):
                if not waiting.found.done():  # its client may have left
                    waiting.found.set_result(pieces)

    async def _take(self) -> list[_Waiting]:
        """What waits, at least one; a batch that is not full waits for the window."""
        settings = self._settings
        batch = [await self._queue.get()]
        while len(batch) < settings.max_batch_size and not self._queue.empty():
            batch.append(self._queue.get_nowait())
        try:
            async with asyncio.timeout(settings.window_seconds):
                while len(batch) < settings.max_batch_size:
                    batch.append(await self._queue.get())
        except TimeoutError:
            pass
        return batch

    def _translate(self, batch: Sequence[_Waiting]) -> list[list[str]]:
        results = self._translator.translate_batch(
            [waiting.pieces for waiting in batch],
            beam_size=self._settings.beam_size,
            length_penalty=1.0,
            max_decoding_length=max(waiting.cap for waiting in batch) - 1,
            min_decoding_length=0,
            suppress_sequences=self._suppressed,
        )
        return [
            result.hypotheses[0][: waiting.cap - 1]  # the batch's cap is that of its longest
            for waiting, result in zip(batch, results, strict=True)
        ]


class TextFront:
    """Texts to pieces and back, as in our front: in a thread, or at once where they are short."""

    def __init__(self, checkpoint: Path, model: Path, manifest: Manifest) -> None:
        self._manifest = manifest
        self._pair = manifest.pairs[0]
        self._pipeline = TextPipeline(load_tokenizer(checkpoint, manifest), manifest.limits)
        shared = model / "shared_vocabulary.json"
        self.pieces: list[str] = json.loads(shared.read_text(encoding="utf-8"))
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="text")

    async def translate(self, texts: Sequence[str], batcher: Batcher) -> list[str]:
        """The texts of a request, all segments side by side."""
        is_quick = are_short(sum(map(len, texts)), len(texts))

        async def translated(text: str) -> str:
            prepared = await self._done(
                lambda: self._pipeline.prepare(text, self._pair), is_quick=is_quick
            )
            found = await asyncio.gather(
                *(
                    batcher.translate(
                        [self.pieces[index] for index in segment.source_ids[:-1]],
                        target_cap(len(segment.source_ids), self._manifest.limits),
                    )
                    for segment in prepared.network_segments
                )
            )
            answers = [
                _Answer(token_ids=[self._ids[piece] for piece in pieces]) for pieces in found
            ]
            finished = await self._done(
                lambda: self._pipeline.finish(prepared, answers), is_quick=is_quick
            )
            return finished.text

        if len(texts) == 1:
            return [await translated(texts[0])]
        return await asyncio.gather(*map(translated, texts))

    async def _done(self, work: Callable[[], T], *, is_quick: bool) -> T:
        if is_quick:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class Application:
    """`POST /translate`, and nothing else; bare ASGI.

    Args:
        front: Of texts.
        batcher: Of segments.
        on_ready: Called when the network is warm.
    """

    def __init__(self, front: TextFront, batcher: Batcher, on_ready: Callable[[], object]) -> None:
        self._front = front
        self._batcher = batcher
        self._on_ready = on_ready

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Batches are served, and the network is warm."""
        task = asyncio.create_task(self._batcher.run())
        await self._front.translate(["Warm up."], self._batcher)
        self._on_ready()
        yield
        task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif (scope["type"], scope.get("method"), scope["path"]) == ("http", "POST", "/translate"):
            await _reply(send, 200, await self._translated(await _body(receive)))
        else:
            await _reply(send, 404, {"error": "not here"})

    async def _translated(self, body: bytes) -> dict[str, object]:
        texts = json.loads(body)["q"]
        if isinstance(texts, str):
            (found,) = await self._front.translate([texts], self._batcher)
            return {"translatedText": found}
        return {"translatedText": await self._front.translate(texts, self._batcher)}

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
        await send({"type": "lifespan.shutdown.complete"})


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _reply(send: Send, status: int, content: object) -> None:
    body = _ENCODER.encode(content).encode("utf-8", "replace")
    length = str(len(body)).encode("ascii")
    headers = [(b"content-length", length), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def create_app(
    models: Path, settings: ServerSettings, on_ready: Callable[[], object] = lambda: None
) -> Application:
    """The application; the network is loaded, and warm when it starts.

    Args:
        models: What `benchmarks.peers.models` wrote.
        settings: How it batches.
        on_ready: Called when it is warm.
    """
    stored = "float32" if settings.compute_type == "float32" else "int8"
    directory = models / f"ctranslate2-{stored}"
    manifest = read_manifest(models / "checkpoint")
    front = TextFront(models / "checkpoint", directory, manifest)
    translator = ctranslate2.Translator(
        str(directory),
        device="cpu",
        compute_type=settings.compute_type,
        inter_threads=settings.inter_threads,
        intra_threads=settings.intra_threads,
    )
    suppressed = [[front.pieces[index]] for index in manifest.tokens.suppressed_ids]
    return Application(front, Batcher(translator, settings, suppressed), on_ready)


def main() -> None:
    """Read the flags, listen, say where, serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-batch-size", type=int, default=32)
    parser.add_argument("--window-seconds", type=float, default=0.002)
    parser.add_argument("--inter-threads", type=int, default=1)
    parser.add_argument("--intra-threads", type=int, default=1)
    arguments = parser.parse_args()
    app = create_app(
        arguments.models,
        ServerSettings(
            max_batch_size=arguments.max_batch_size,
            window_seconds=arguments.window_seconds,
            inter_threads=arguments.inter_threads,
            intra_threads=arguments.intra_threads,
        ),
        on_ready=gc.freeze,
    )
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    with socket.create_server(("127.0.0.1", arguments.port)) as listener:
        print(f"listens on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="on",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
