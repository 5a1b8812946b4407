"""Runs the trials of `trial_groups/`: recipes and shapes, each for as many minutes of a core.

    python experiments/trials.py DATA recipes
    python -m benchmarks.trials runs/trials/recipes

runs the trials of a group one after the other, each from where it stands, after the texts that they
need are translated; `--only` names some of them. Minutes are the processor's, so what else the
machine does costs a trial nothing but patience. The second command says what came of it.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import everyday
import yaml
from text_files import write_lines

from commands import one_line_errors, run_all
from made_of import check_same, checkpoint_digest, digest, write_note
from model.train.data.filtering import sentence_key
from model.train.data.parallel import find_text, read_lines
from model.train.files import write_whole
from model.train.saved.retention import CHECKPOINT_FOLDER
from model.train.saved.state import has_state

HERE = Path(__file__).parent
FOLDER = Path("runs/trials")
MEASURED = ["dev/docs-heldout"]
"""Scored in the end beside the first dev corpus; no test set has a say in what is chosen."""

GROUPS = ("recipes", "shapes")

OTHER_SIDE = {
    "source_language": "target_language",
    "source_tag": "target_tag",
    "target_language": "source_language",
    "target_tag": "source_tag",
}
SWAPPED_FILES = {"source_file": "target_file", "target_file": "source_file"}
OF_A_DIRECTION = ("folder", *OTHER_SIDE, "train", "dev", "report")
"""Keys of `data` that stand in each of its `pairs` where these are listed."""

Document = dict[str, Any]


def main() -> None:
    """Translate what trials learn from, then run them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder of the text")
    parser.add_argument("group", choices=GROUPS, help="of trials")
    parser.add_argument("--only", nargs="+", metavar="TRIAL", help="only these")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (%(default)s)")
    arguments = parser.parse_args()
    group, folder = read_group(arguments.group), FOLDER / arguments.group
    unknown = set(arguments.only or ()) - group["trials"].keys()
    if unknown:
        parser.error(f"no such trial: {', '.join(sorted(unknown))}; there are {[*group['trials']]}")
    threads = ["--threads", str(arguments.threads)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, experiment, start in trials(group, arguments.data, folder):
        if arguments.only and name not in arguments.only:
            continue
        prepare(group, experiment, arguments.data, folder, threads)
        path, output = folder / f"{name}.yaml", folder / name
        write_whole(path, yaml.safe_dump(experiment, allow_unicode=True).encode())
        how = ["--resume"] if has_state(output) else start
        words = ["train", str(path), "--data", str(arguments.data), "--output", str(output)]
        run_all([[*words, *threads, "--cache", str(folder / "cache"), *how]])


def read_group(name: str) -> Document:
    """A file of `trial_groups/`."""
    path = HERE / "trial_groups" / f"{name}.yaml"
    document: Document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def trials(
    group: Document, data: Path, folder: Path
) -> Iterator[tuple[str, Document, Sequence[str]]]:
    """Name, experiment and `--start-from` of every trial of a group.

    Args:
        group: A file of `trial_groups/`.
        data: Folder of the text.
        folder: Of the group's runs.
    """
    for name, changes in group["trials"].items():
        others = dict(changes)
        minutes = others.pop("minutes", group["minutes"])
        start = others.pop("start_from", None)
        begins = folder / start / CHECKPOINT_FOLDER if start else group.get("start_from")
        experiment = yaml.safe_load((HERE / group["base"]).read_text(encoding="utf-8"))
        experiment |= {"name": name, "description": "A trial"}
        experiment["data"]["report"] = MEASURED
        # Minutes alone end it: a limit of updates would end fast shapes sooner than slow ones.
        experiment["run"] |= {"max_updates": 0, "max_minutes": minutes}
        experiment["run"] |= {"time": "processor", "precision": "auto"}
        without, more = others.pop("without", ()), others.pop("train+", ())
        corpora = experiment["data"]["train"]
        experiment["data"]["train"] = [
            *(corpus for corpus in corpora if corpus["name"] not in without),
            *(placed(corpus, data, folder) for corpus in more),
        ]
        if others.pop("both_ways", False):
            experiment["data"] = both_ways(experiment["data"])
        for key, value in others.items():
            part, _, leaf = key.partition(".")
            experiment.setdefault(part, {})[leaf] = value
        yield name, experiment, ["--start-from", str(begins)] if begins else []


def both_ways(data: Mapping[str, Any]) -> Document:
    """The text of one direction as text of both, in one network: the given direction first."""
    text = {key: value for key, value in data.items() if key not in OF_A_DIRECTION}
    there = {key: data[key] for key in OF_A_DIRECTION if key in data}
    back = {OTHER_SIDE.get(key, key): value for key, value in there.items()}
    back["train"] = [
        {SWAPPED_FILES.get(key, key): value for key, value in corpus.items()}
        for corpus in there["train"]
    ]
    return text | {"pairs": [there, back]}


def placed(corpus: Mapping[str, Any], data: Path, folder: Path) -> Document:
    """A corpus whose files are where they are on this machine."""
    places, found = {"DATA": data, "FOLDER": folder}, dict(corpus)
    for key in SWAPPED_FILES:
        if key in found:
            first, _, rest = found[key].partition("/")
            found[key] = str(places[first] / rest)
    return found


def prepare(
    group: Document, experiment: Document, data: Path, folder: Path, threads: Sequence[str]
) -> None:
    """Translate the texts that an experiment names, unless they are there.

    Another pair's text is translated without what is held out, which goes to the file `kept`.

    Raises:
        SystemExit: One that is there was made by another checkpoint, or of another text.
    """
    directions = experiment["data"].get("pairs", [experiment["data"]])
    corpora = [corpus for direction in directions for corpus in direction["train"]]
    named = {corpus.get(key) for corpus in corpora for key in SWAPPED_FILES}
    for name, made_of in group.get("texts", {}).items():
        path = folder / name
        if str(path) not in named:
            continue
        source, checkpoint = text_file(data, made_of["source"]), Path(made_of["checkpoint"])
        if "kept" in made_of:
            source = write_kept(folder / made_of["kept"], source, data)
        plain = path.with_name(f"untagged-{name}") if "tag" in made_of else path
        words = ["translate", str(source), "--checkpoint", str(checkpoint)]
        words += ["--output", str(plain), *threads]
        digests = {
            "checkpoint": (checkpoint, checkpoint_digest(checkpoint)),
            "text": (source, digest(source)),
        }
        if "nearest_to" in made_of:
            nearest = text_file(data, made_of["nearest_to"])
            words += ["--nearest-to", str(nearest), "--beam-size", "8"]
            digests["other side"] = (nearest, digest(nearest))
        note = path.with_name(f"{name}.made-of.sha256")
        if path.exists():
            check_same(path, note, digests, "trials")
            continue
        write_note(note, {key: found for key, (_, found) in digests.items()})
        run_all([words])
        if "tag" in made_of:
            write_lines(path, [f"{made_of['tag']}{line}" for line in read_lines(plain)])


def write_kept(path: Path, english: Path, data: Path) -> Path:
    """Write another pair's English text without what is held out of the Chinese pair."""
    held = {sentence_key(line) for line in everyday.held_out(data)}
    write_lines(path, (line for line in read_lines(english) if sentence_key(line) not in held))
    return path


def text_file(data: Path, name: str) -> Path:
    """The file of `en-zh/train/tatoeba.zh`, compressed or not."""
    path = data / name
    return find_text(path.parent, path.stem, path.suffix.removeprefix("."))


if __name__ == "__main__":
    with one_line_errors():
        main()
