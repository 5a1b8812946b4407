"""Worker of the comparison: every hypothesis that one checkout's library finds.

Owns which objects of the library are used, and their places in older and newer checkouts. It is run
by its path, with PYTHONPATH naming the checkout, and so imports nothing of this folder. The task
comes on standard input as JSON; every line of standard output is JSON too. Floats are written as
hexadecimal, which keeps every bit.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

PLACES: Mapping[str, tuple[str, ...]] = {
    "Translator": ("model.offline.translator", "model.translator"),
    "load_for_decoding": ("model.loading",),
    "SearchConfig": ("model.config",),
}
"""Modules that may hold an object of the library, the present one first."""


def leave_editable_installs() -> None:
    """Take no module from the checkout that is installed, where the one to look at has none."""
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not str(getattr(finder, "__module__", "")).startswith("__editable__")
    ]


def find(name: str, places: Sequence[str]) -> Any:
    """An object of the library, from the first module that exists.

    Raises:
        ModuleNotFoundError: No module of that name exists, or one lacks something it imports.
    """
    for place in places:
        try:
            return getattr(import_module(place), name)
        except ModuleNotFoundError as error:
            if place == places[-1] or not (error.name and is_part_of(error.name, place)):
                raise
    raise ModuleNotFoundError(name)


def is_part_of(name: str, place: str) -> bool:
    """Whether a module is the place itself or a package that it would be in."""
    return f"{place}.".startswith(f"{name}.")


def hypothesis_record(hypothesis: Any) -> list[object]:
    """A hypothesis with every bit of its numbers."""
    return [
        list(hypothesis.token_ids),
        hypothesis.score.hex(),
        [value.hex() for value in hypothesis.token_log_probs],
        hypothesis.is_truncated,
        None if hypothesis.alignment is None else list(hypothesis.alignment),
    ]


def outputs(
    translator: Any,
    pair: object,
    lines: Sequence[str],
    search: object,
) -> Iterator[dict[str, object]]:
    """Text and hypotheses of every line, in order; all lines are searched together."""
    prepared = [translator.pipeline.prepare(line, pair) for line in lines]
    requests = [translator.requests(text, pair, search) for text in prepared]
    found = iter(translator.search([request for own in requests for request in own]))
    for text, own in zip(prepared, requests, strict=True):
        segments = [next(found) for _ in own]
        is_whole = all(segments)  # without a finite score there is no hypothesis
        best = [hypotheses[0] for hypotheses in segments] if is_whole else []
        yield {
            "text": translator.pipeline.finish(text, best).text if is_whole else None,
            "hypotheses": [[hypothesis_record(one) for one in each] for each in segments],
        }


def answer(task: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """The outputs of each direction and search of a task, then where the library's modules are.

    Args:
        task: `checkpoint`, `compute_type`, `num_threads`; `searches` by name, as the arguments of a
            `SearchConfig`; `directions`, each with `source`, `target` and `lines`.
    """
    import torch  # noqa: PLC0415  # its threads are set before anything else is imported

    torch.set_num_threads(task["num_threads"])
    translator_class, load, search_class = (find(name, PLACES[name]) for name in PLACES)
    runnable = load(
        Path(task["checkpoint"]), compute_type=task["compute_type"], num_threads=task["num_threads"]
    )
    translator = translator_class(runnable)
    pairs = {(pair.source, pair.target): pair for pair in runnable.manifest.pairs}
    for direction in task["directions"]:
        pair = pairs[direction["source"], direction["target"]]
        for name, arguments in task["searches"].items():
            started = time.perf_counter()
            found = list(outputs(translator, pair, direction["lines"], search_class(**arguments)))
            yield {
                "direction": f"{pair.source} → {pair.target}",
                "search": name,
                "seconds": round(time.perf_counter() - started, 3),
                "outputs": found,
            }
    yield {"places": sorted(library_places())}


def library_places() -> set[str]:
    """Folders that the library's modules were taken from."""
    return {
        str(Path(file).resolve().parents[name.count(".") + (Path(file).stem == "__init__")])
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "model" and (file := module.__file__)
    }


def main() -> None:
    """Answer the task on standard input."""
    leave_editable_installs()
    for line in answer(json.load(sys.stdin)):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
