"""Makes a back-translation: everyday English of all pairs, put into Chinese by a machine.

    python experiments/everyday.py DATA

collects the English side of Tatoeba in every pair's training text, leaves out what the Chinese pair
has already and what is held out of it, and translates the rest with a checkpoint. A machine's
sentences are a source of `zh-en-fourth.yaml` and those after it, and never a target;
each begins with a tag (Caswell et al. 2019), so that the network can tell them from people's. It
goes on where it was interrupted.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from text_files import write_lines

from commands import one_line_errors, run_all
from model.train.data.filtering import sentence_key
from model.train.data.parallel import find_text, read_lines

FOLDER = Path("runs/everyday")  # the experiment names it
CHECKPOINT = Path("checkpoints/en-zh-small")
OWN, PAIRS = "en-zh", ("en-de", "en-fr", "en-es")
CORPORA = ("tatoeba", "tatoeba-more")
TAG = "* "


def main() -> None:
    """Collect the English sentences, translate them, put the tag before what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder of the text")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    arguments = parser.parse_args()
    english, untagged = FOLDER / "zh.en.gz", FOLDER / "untagged.zh.gz"
    write_lines(english, new_sentences(arguments.data))
    words = ["translate", str(english), "--checkpoint", str(CHECKPOINT), "--beam-size", "2"]
    run_all([[*words, "--output", str(untagged), "--threads", str(arguments.threads)]])
    write_lines(FOLDER / "zh.zh.gz", [f"{TAG}{line}" for line in read_lines(untagged)])


def new_sentences(data: Path) -> list[str]:
    """Everyday English that the Chinese pair does not have, in the order of pairs and corpora.

    Sentences are the same whatever their capitals and punctuation. What any dev or test text of the
    Chinese pair holds is left out.
    """
    seen = {sentence_key(line) for line in known_sentences(data)}
    found = []
    for line in everyday(data, PAIRS):
        name = sentence_key(line)
        if name and name not in seen:
            seen.add(name)
            found.append(line)
    return found


def known_sentences(data: Path) -> Iterator[str]:
    """The English side of the Chinese pair's everyday text, and of all that is held out of it."""
    yield from everyday(data, (OWN,))
    yield from held_out(data)


def held_out(data: Path) -> Iterator[str]:
    """The English side of every dev and test text of the Chinese pair."""
    for folder in (OWN, "zh-en"):
        for split in ("dev", "test"):
            for path in sorted((data / folder / split).glob("*.en*")):
                yield from read_lines(path)


def everyday(data: Path, pairs: Sequence[str]) -> Iterator[str]:
    """The English side of the pairs' everyday corpora, as far as they have them.

    Raises:
        ConfigError: A pair has none.
    """
    for pair in pairs:
        folder = data / pair / "train"
        there = [corpus for corpus in CORPORA if any(folder.glob(f"{corpus}.en*"))]
        for corpus in there or CORPORA[:1]:
            yield from read_lines(find_text(folder, corpus, "en"))


if __name__ == "__main__":
    with one_line_errors():
        main()
