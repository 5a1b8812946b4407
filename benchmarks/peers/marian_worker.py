"""Marian as a rival's process: the conversation of `benchmarks.peers.worker`, with pymarian.

Runs where pymarian is installed and nothing of this project is: it needs the standard library and
pymarian alone. Marian takes text, so ids go as words (`benchmarks.peers.marian_model`).

    PYTHON benchmarks/peers/marian_worker.py MODELS THREADS
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pymarian

Message = dict[str, Any]


class Marian:
    """`pymarian.Translator`, one for every search that is asked for."""

    def __init__(self, models: Path, num_threads: int) -> None:
        self._folder = models / "marian"
        self._num_threads = num_threads
        self._opened: tuple[object, ...] = ()
        self._translator: Any = None

    def load(self, settings: Message, *, beam_size: int = 4, factor: float = 1.0) -> None:
        """Read the weights for one kind of search, if they are not there already."""
        wanted = (beam_size, factor, *sorted(settings.items()))
        if wanted == self._opened:
            return
        name = "model.npz" if settings["compute_type"] == "float32" else "model.bin"
        vocabulary = str(self._folder / "vocabulary.json")
        self._translator = None
        self._translator = pymarian.Translator(
            models=[str(self._folder / name)],
            vocabs=[vocabulary, vocabulary],
            beam_size=beam_size,
            normalize=1,
            max_length_factor=factor,
            cpu_threads=self._num_threads,
            mini_batch=settings["mini_batch"],
            maxi_batch=settings["maxi_batch"],
            maxi_batch_sort="src",
            skip_cost=beam_size == 1,
            quiet=True,
        )
        self._opened = wanted

    def translate(self, work: Message, settings: Message) -> Message:
        """Seconds from lines to lines, and the tokens of the answers with an EOS each."""
        factor = max(
            (length - 1) / len(source)  # its cap counts no EOS
            for source, length in zip(work["sources"], work["max_lengths"], strict=True)
        )
        self.load(settings, beam_size=work["beam_size"], factor=factor)
        lines = [" ".join(f"t{token}" for token in source[:-1]) for source in work["sources"]]
        started = time.perf_counter()
        answers = self._translator.translate(lines)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "num_tokens": sum(len(line.split()) + 1 for line in answers)}


def resident_bytes() -> dict[str, int]:
    """Resident size of this process: now, and the highest there was."""
    names = {"VmRSS": "resident_bytes", "VmHWM": "peak_bytes"}
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    sizes = (line.partition(":") for line in lines)
    return {names[name]: int(value.split()[0]) * 1024 for name, _, value in sizes if name in names}


def answer(marian: Marian, question: Message) -> Message:
    """What is answered to a line."""
    if question["command"] == "memory":
        return {**resident_bytes()}
    if question["command"] == "load":
        marian.load(question["settings"])
        return {}
    return marian.translate(question["work"], question["settings"])


def main() -> None:
    """Say that it is ready, then answer every line until there is none."""
    marian = Marian(Path(sys.argv[1]), int(sys.argv[2]))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answers.write(json.dumps({"ready": "marian"}) + "\n")
        answers.flush()
        for line in sys.stdin:
            answers.write(json.dumps(answer(marian, json.loads(line))) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
