"""Marian itself, asked the same lines as our networks: its files, and those of our export.

Owns the conversation with pymarian, which runs in an interpreter of its own (600 MB; no dependency
of the project), and the networks of released sizes that it trains for a few updates. Without it,
what Marian wrote of the fixtures is compared (`benchmarks.parity.references`).
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import torch

from benchmarks.parity.answers import count
from benchmarks.parity.families import Family
from benchmarks.parity.figures import INT8_TOKENS, Distance, Figures
from benchmarks.parity.references import BEAM, NUM_SCORED, compare_search, target_ids
from benchmarks.parity.subject import BATCH, MAX_SOURCE, MAX_TARGET, Sample, Subject
from benchmarks.parity.text import read_lines
from model.config import ModelConfig
from model.exchange.export.marian.exporter import export_marian
from model.exchange.imports.marian.importer import find_files
from model.exchange.imports.marian.options import LAYER_NORM_EPSILON
from support.exchange_cases import Shape, exchange_checkpoint
from support.huggingface import Comparison
from support.int8_reference import Int8Reference
from support.marian_oracle import MarianHypothesis, word_scores

INT8_WIDTH, INT8_ROWS = 64, 8
"""What Marian's int8 products want widths and vocabularies to be multiples of."""
_NUM_TRAINING_LINES = 500
_NUM_UPDATES = 20
_TRAINING = (
    "--type transformer --cpu-threads 1 --seed 7 --mini-batch 16 --maxi-batch 10 -w 512 --quiet"
    " --learn-rate 0.0003 --cost-type ce-mean-words --optimizer adam --disp-freq 1000u"
    " --save-freq 1000u --max-length 60 --max-length-crop --tied-embeddings-all"
    " --dim-vocabs 2000 2000 --sentencepiece-options --hard_vocab_limit=false"
)
_SHAPES = {
    "Marian, Firefox size": (
        "--dim-emb 256 --enc-depth 6 --dec-depth 2 --transformer-dim-ffn 1536"
        " --transformer-heads 8 --transformer-ffn-activation relu"
        " --transformer-decoder-autoreg rnn --dec-cell ssru"
    ),
    "Marian, OPUS-MT base": (
        "--dim-emb 512 --enc-depth 6 --dec-depth 6 --transformer-dim-ffn 2048"
        " --transformer-heads 8 --transformer-ffn-activation swish"
    ),
}


_OWN: Mapping[str, Shape] = {
    "own, SSRU": {"decoder_cell": "ssru"},
    "own, SSRU, RMSNorm": {"decoder_cell": "ssru", "norm": "rmsnorm", "norm_placement": "pre"},
    "own, three tables": {"share_embeddings": False, "tie_output": False, "activation": "gelu"},
    "own, pre-norm": {"norm_placement": "pre", "embedding_norm": True, "decoder_d_ff": 128},
}
_OWN_WIDTHS: Shape = {"d_model": INT8_WIDTH, "d_ff": INT8_WIDTH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Marian:
    """One network, as pymarian's program runs it.

    Attributes:
        python: An interpreter with pymarian.
        model: `.npz`, or `.bin` of its int8.
        vocabularies: Of source and target.
    """

    python: str
    model: Path
    vocabularies: tuple[Path, Path]

    @classmethod
    def of(cls, python: str, source: Path) -> "Marian":
        """The network of a folder or a file."""
        files, _ = find_files(source)
        return cls(python=python, model=files.model, vocabularies=files.vocabularies)

    @property
    def reads_text(self) -> bool:
        """Whether it cuts text into pieces itself."""
        return all(path.suffix == ".spm" for path in self.vocabularies)

    def decoded(self, lines: Sequence[str]) -> list[list[MarianHypothesis]]:
        """Its n-best list of every line."""
        raw = ["--no-spm-decode"] if self.reads_text else []
        search = ["-b", str(BEAM), "-n", "1", "--n-best", "--word-scores", *raw]
        output = self._run("decode", *search, "--maxi-batch", "1", lines=lines)
        found: list[list[MarianHypothesis]] = [[] for _ in lines]
        for line in output:
            number, pieces, words, _, score = line.split(" ||| ")
            found[int(number)].append(_hypothesis(pieces, words, float(score)))
        return found

    def scored(self, sources: Path, targets: Path) -> list[list[float]]:
        """Its log-probability of every piece of given translations, and of their ends."""
        output = self._run("score", "-t", str(sources), str(targets), "--word-scores")
        return [_numbers(line.split(" ||| ")[1]) for line in output]

    def forced(self, sources: Path, targets: Path) -> list[list[float]]:
        """Its log-probability of every piece of given translations, by its decoder.

        Its scorer crashes with int8 (1.12.42). The decoder is held to the pieces, not to their end,
        and goes on: what comes behind them is of its own choice.
        """
        given = ["--input", str(sources), str(targets), "--force-decode", "--allow-unk", "-b", "1"]
        output = self._run("decode", *given, "--n-best", "--word-scores", "--maxi-batch", "1")
        return [_numbers(line.split(" ||| ")[2]) for line in output]

    def in_int8(self, folder: Path) -> "Marian":
        """The same network as its own tool stores it for its int8 products."""
        model = folder / "marian.intgemm8.bin"
        words = ["-f", str(self.model), "-t", str(model), "-g", "intgemm8"]
        _pymarian(self.python, "convert", *words)
        return replace(self, model=model)

    def _run(self, command: str, *options: str, lines: Sequence[str] = ()) -> list[str]:
        words = ["-m", str(self.model), "-v", *map(str, self.vocabularies), "--cpu-threads", "1"]
        words += ["--quiet", "-w", "256", "--mini-batch", "1", *options]
        return _pymarian(self.python, command, *words, text="".join(f"{line}\n" for line in lines))


def _pymarian(python: str, *words: str, text: str = "") -> list[str]:
    done = subprocess.run(
        [python, "-m", "pymarian", *words],
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"pymarian {words[0]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout.decode().removesuffix("\n").split("\n")  # pieces may hold other breaks


def _hypothesis(pieces: str, words: str, score: float) -> MarianHypothesis:
    return MarianHypothesis(tuple(pieces.split()), tuple(_numbers(words)), score)


def _numbers(words: str) -> list[float]:
    return [float(word) for word in words.split()[1:]]


def exported_families() -> Iterator[Family]:
    """Random networks of our own, of other shapes than the fixtures, as we export them."""
    for name, shape in _OWN.items():
        yield Family(
            name=name, reference="marian", write=_Exported(shape), pairs=(("en", "zh-Hans"),)
        )


@dataclass(frozen=True, slots=True)
class _Exported:
    """What writes a network with Marian's positions and epsilon."""

    shape: Shape

    def __call__(self, folder: Path) -> Path:
        marians = {"position": "sinusoidal-m2m100", "norm_epsilon": LAYER_NORM_EPSILON}
        shape = _OWN_WIDTHS | marians | self.shape
        export_marian(exchange_checkpoint(folder, **shape), folder / "own")
        return folder / "own"


def marian_families(python: str, data: str | None) -> Iterator[Family]:
    """Networks of released sizes that Marian trains for a few updates, their vocabularies small.

    Args:
        python: An interpreter with pymarian.
        data: What DRAGOMAN_DATA says: lines to train with.
    """
    for name, shape in _SHAPES.items():
        yield Family(name=name, reference="marian", write=_Trained(python, data, shape))


@dataclass(frozen=True, slots=True)
class _Trained:
    """What writes a network that Marian has trained."""

    python: str
    data: str | None
    shape: str

    def __call__(self, folder: Path) -> Path:
        lines = read_lines(self.data, _NUM_TRAINING_LINES)
        texts = [folder / "train.en", folder / "train.de"]
        _write(texts[0], lines)
        _write(texts[1], lines[1:] + lines[:1])
        trained = folder / "trained"
        trained.mkdir()
        vocabulary = str(trained / "vocab.ende.spm")
        words = ["-m", str(trained / "model.npz"), "-t", *map(str, texts)]
        words += ["-v", vocabulary, vocabulary, "--after", f"{_NUM_UPDATES}u"]
        _pymarian(self.python, "train", *words, *_TRAINING.split(), *self.shape.split())
        for path in trained.glob("model.npz.*"):
            path.unlink()
        return trained


def compare_live(
    subject: Subject, lines: Sequence[str], figures: Figures, folder: Path, *, python: str
) -> None:
    """N-best lists, or with pre-norm scores, of the network as it came and as we export it.

    With pre-norm and self-attention Marian's decoder does not agree with its own scorer (1.12.42),
    which computes what training did. Its own int8 is asked of the others whose widths it is made
    for.

    Args:
        subject: A network of Marian's.
        lines: What is asked; cut, so that sources have at most `MAX_SOURCE` tokens.
        figures: Filled.
        folder: Where the export goes.
        python: An interpreter with pymarian.
    """
    export_marian(subject.checkpoint, folder / "Marian")
    marian, again = (Marian.of(python, path) for path in (subject.source, folder / "Marian"))
    figures.exported["Marian"] = Distance()
    sources = [_cut(subject, line, MAX_SOURCE, is_target=False) for line in lines]
    network = subject.checkpoint.manifest.network
    if network.norm_placement == "pre" and network.decoder_cell == "self-attention":
        _compare_scores(subject, sources, (marian, again), figures, folder)
        return
    if marian.reads_text and has_int8(network):
        _compare_int8(subject, sources, marian, figures, folder)
    comparison = Comparison()
    asked = sources if marian.reads_text else [_pieces(subject, line) for line in sources]
    both = marian.decoded(asked), again.decoded(asked)
    for line, theirs, exported in zip(sources, *both, strict=True):
        _compare_lists(subject, line, theirs, figures, comparison)
        for one, other in zip_longest(theirs, exported):
            if one is None or other is None or one.pieces != other.pieces:
                comparison.differences.append(f"{line}: the export has another hypothesis")
            else:
                figures.exported["Marian"].add_lists([other.word_scores], [one.word_scores])
    count(figures, comparison)


def has_int8(network: ModelConfig) -> bool:
    """Whether Marian's int8 products are made for a network: others crash it (1.12.42)."""
    widths = network.d_model, network.d_ff, network.decoder_inner_width
    num_rows = network.output_size - 1  # Marian feeds zeros where we have a start token
    has_widths = not any(width % INT8_WIDTH for width in widths) and num_rows % INT8_ROWS == 0
    return has_widths and network.tie_output


def _compare_int8(
    subject: Subject, sources: Sequence[str], marian: Marian, figures: Figures, folder: Path
) -> None:
    """What int8 changes in Marian and in ours, of the same pieces, which are other lines.

    Marian's tool leaves embeddings and output layer in float32; the kernels have them in int8, so
    the definition of their arithmetic is asked without, and with them, whether it is theirs.
    """
    pairs = list(other_lines(subject, sources))
    paths = folder / "int8.sources", folder / "int8.targets"
    for path, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        _write(path, texts)
    theirs = list(zip(marian.forced(*paths), marian.in_int8(folder).forced(*paths), strict=True))
    figures.reference_int8, figures.int8_beside = Distance(), Distance()
    figures.int8_defined, figures.int8_alike = Distance(), Distance()
    network, state = (
        subject.checkpoint.manifest.network,
        subject.checkpoint.transformer.state_dict(),
    )
    defined = Int8Reference(network, state)
    alike = Int8Reference(network, state, has_float_tables=True)
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        given = subject.given(
            [_ids(subject, source, is_target=False) for source, _ in batch],
            [_ids(subject, target, is_target=True) for _, target in batch],
        )
        ours = zip(
            subject.log_probs(given),
            subject.int8_log_probs(given),
            defined_log_probs(defined, given),
            defined_log_probs(alike, given),
            strict=True,
        )
        for mine, other in zip(ours, theirs[start : start + BATCH], strict=True):
            num_pieces = min(len(mine[0]) - 1, len(other[0]))  # it stops at thrice the source
            (float32, int8, int8_defined, int8_alike), (its_float32, its_int8) = (
                [scores[:num_pieces] for scores in all_of] for all_of in (mine, other)
            )
            figures.logits.add_lists([float32], [its_float32])
            figures.int8_beside.add_lists([int8], [float32])
            figures.int8_defined.add_lists([int8_defined], [float32])
            figures.int8_alike.add_lists([int8_alike], [float32])
            figures.reference_int8.add_lists([its_int8], [its_float32])


@torch.inference_mode()
def defined_log_probs(network: Int8Reference, sample: Sample) -> list[list[float]]:
    """Of every target token, by the definition of the kernels' arithmetic, line by line."""
    start = len(sample.prefix) - 1
    found = []
    for source, target in zip(sample.sources, sample.targets, strict=True):
        fed = torch.tensor([*sample.prefix, *target[:-1]])
        log_probs = network.log_probs(torch.tensor(source), fed)[start:]
        found.append(log_probs[range(len(target)), target].tolist())
    return found


def other_lines(subject: Subject, sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every line with another one, and with more of them until there are tokens to judge by."""
    targets = [_cut(subject, line, MAX_TARGET, is_target=True) for line in sources]
    num_tokens = 0
    for shift in range(1, max(2, len(sources))):
        for number, source in enumerate(sources):
            target = targets[(number + shift) % len(sources)]
            num_tokens += len(_ids(subject, target, is_target=True))
            yield source, target
        if num_tokens >= INT8_TOKENS:
            return


def _compare_lists(
    subject: Subject,
    line: str,
    hypotheses: Sequence[MarianHypothesis],
    figures: Figures,
    comparison: Comparison,
) -> None:
    checkpoint = subject.checkpoint
    source = checkpoint.tokenizer.encode(line, subject.pair)
    targets = [target_ids(subject, hypothesis) for hypothesis in hypotheses]
    start = checkpoint.manifest.tokens.start_id
    for target, hypothesis in list(zip(targets, hypotheses, strict=True))[:NUM_SCORED]:
        ours = word_scores(checkpoint.transformer, start, source, target)
        figures.logits.add_lists([ours], [hypothesis.word_scores])
    compare_search(subject, source, targets, hypotheses, comparison)


def _compare_scores(
    subject: Subject,
    sources: Sequence[str],
    marians: Sequence[Marian],
    figures: Figures,
    folder: Path,
) -> None:
    """Log-probabilities of translations that are other lines."""
    checkpoint, start = subject.checkpoint, subject.checkpoint.manifest.tokens.start_id
    targets = [_cut(subject, line, MAX_TARGET, is_target=True) for line in reversed(sources)]
    paths = folder / "sources", folder / "targets"
    for path, texts in zip(paths, (sources, targets), strict=True):
        _write(path, texts)
    theirs, exported = (marian.scored(*paths) for marian in marians)
    for source, target, scores in zip(sources, targets, theirs, strict=True):
        ids = checkpoint.tokenizer.encode_target(target)
        encoded = checkpoint.tokenizer.encode(source, subject.pair)
        ours = word_scores(checkpoint.transformer, start, encoded, ids)
        figures.logits.add_lists([ours], [scores])
    figures.exported["Marian"].add_lists(exported, theirs)
    figures.is_searched = False


def _cut(subject: Subject, line: str, length: int, *, is_target: bool) -> str:
    """The beginning of a line, so many tokens with EOS and tags at most, if one character can."""
    words = line.split()
    while len(words) > 1 and len(_ids(subject, " ".join(words), is_target=is_target)) > length:
        words.pop()
    text = " ".join(words)
    while len(text) > 1 and len(_ids(subject, text, is_target=is_target)) > length:
        text = text[:-1]
    return text


def _ids(subject: Subject, text: str, *, is_target: bool) -> list[int]:
    tokenizer = subject.checkpoint.tokenizer
    return tokenizer.encode_target(text) if is_target else tokenizer.encode(text, subject.pair)


def _pieces(subject: Subject, line: str) -> str:
    """Tags and pieces of a line, as networks with a table of their own are given them."""
    tokenizer = subject.checkpoint.tokenizer
    names = tokenizer.source_pieces()
    ids = tokenizer.encode(line, subject.pair)[:-1]
    return " ".join(names.get(index, "<unk>") for index in ids)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
