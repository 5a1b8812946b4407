"""The comparison of imported networks: what is asked, what counts as parity, what is written."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from benchmarks.parity.__main__ import main, parse_arguments
from benchmarks.parity.families import FULL, REDUCED
from benchmarks.parity.figures import INT8_TOKENS, Distance, Figures
from benchmarks.parity.references import COMPARISONS
from benchmarks.parity.subject import MAX_LOGITS, MAX_SOURCE, MAX_TARGET, Subject, converted
from benchmarks.parity.text import REAL_TEXT, SENTENCES, first_lines, read_lines, varied

BY_NAME = {family.name: family for family in (*REDUCED, *FULL)}


def distance(gap: float, *, scale: float = 1.0) -> Distance:
    found = Distance()
    found.add(torch.tensor([scale + gap, 0.0]), torch.tensor([scale, 0.0]))
    return found


def figures(**changes: object) -> Figures:
    return Figures(
        **{  # type: ignore[arg-type]
            "family": "OPUS-MT",
            "reference": "transformers",
            "num_sentences": 8,
            "logits": distance(1e-5),
            "num_equal": 32,
            **changes,
        }
    )


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return converted(BY_NAME["M2M100"], tmp_path_factory.mktemp("parity"))


def test_differences_are_counted_with_their_largest_and_their_mean() -> None:
    found = distance(0.5, scale=4.0)
    found.add_lists([[1.0], [2.0, 3.0]], [[1.0], [2.0, 2.0]])
    assert (found.largest, found.num, found.scale) == (1.0, 5, 4.0)
    assert found.mean == pytest.approx(0.3)


def test_a_difference_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="not finite"):
        distance(float("inf"))
    with pytest.raises(ValueError, match="not finite"):
        Distance().add(torch.tensor([-torch.inf]), torch.tensor([-torch.inf]))


def test_parity_needs_equal_hypotheses_and_near_numbers() -> None:
    assert figures().is_parity
    assert figures(num_equal=0, num_ties=32).is_parity
    assert not figures(num_differing=1).is_parity
    assert not figures(num_equal=0).is_parity
    assert figures(greedy_equal=7, greedy_ties=1).is_parity
    assert not figures(greedy_differing=1).is_parity
    assert figures(num_equal=0, is_searched=False).is_parity
    assert not figures(logits=Distance()).is_parity
    assert not figures(logits=distance(0.01)).is_parity
    assert figures(logits=distance(0.01, scale=100.0)).is_parity
    assert not figures(encoder=distance(0.01)).is_parity
    assert not figures(exported={"CTranslate2": distance(0.01)}).is_parity


def test_int8_is_held_to_the_mean_of_the_references_own_on_the_same_tokens() -> None:
    def of(mean: float, num: int = INT8_TOKENS) -> Distance:
        found = Distance()
        found.add(torch.full((num,), mean), torch.zeros(num))
        return found

    assert figures(int8=of(9.0)).int8_verdict == "no reference"
    assert figures(int8=of(1.09), reference_int8=of(1.0)).int8_verdict == "within"
    beyond = figures(int8=of(1.11), reference_int8=of(1.0))
    assert (beyond.int8_verdict, beyond.is_parity) == ("beyond", False)
    few = figures(int8=of(1.11, 499), reference_int8=of(1.0, 499))
    assert (few.int8_verdict, few.is_parity) == ("too few tokens", True)
    beside = figures(int8=of(9.0, 7000), int8_beside=of(1.0), reference_int8=of(1.0))
    assert beside.int8_verdict == "within"
    assert "1.000/1.0000" in beside.row()
    both = {"int8_beside": of(1.0), "reference_int8": of(1.0)}
    assert figures(**both).alike_verdict == "no reference"
    alike = figures(int8_alike=of(1.2), **both)
    assert (alike.int8_verdict, alike.alike_verdict, alike.is_parity) == ("within", "beyond", False)
    assert figures(int8_alike=of(1.0), int8_defined=of(0.81), **both).is_parity
    assert not figures(int8_alike=of(1.0), int8_defined=of(0.79), **both).is_parity
    more = figures(int8_alike=of(1.0), int8_beside=of(1.2), reference_int8=of(1.0))
    assert (more.int8_verdict, more.alike_verdict, more.is_parity) == ("beyond", "within", False)
    with pytest.raises(ValueError, match="int8 of 7000 tokens beside 500 of the reference"):
        _ = figures(int8=of(1.0, 7000), reference_int8=of(1.0)).int8_verdict


def test_the_largest_difference_of_int8_is_not_judged() -> None:
    ours, theirs = Distance(), Distance()
    ours.add(torch.tensor([*[1.0] * 999, 50.0]), torch.zeros(1000))
    theirs.add(torch.ones(1000), torch.zeros(1000))
    assert figures(int8=ours, reference_int8=theirs).int8_verdict == "within"


def test_what_a_reference_does_not_show_is_a_dash_in_the_table() -> None:
    row = figures(is_searched=False, int8=distance(0.25)).row()
    assert row.split() == ["OPUS-MT", "8", "-", "1.0e-05", "-", "-", "0.250/0.1250", "-", "-", "-"]


def test_lines_are_varied_when_there_are_too_few() -> None:
    assert varied(["a b", "c"], 5) == ["a b", "c", "b a", "c", "a b"]
    lines = read_lines(None, 500)
    assert len(lines) == 500
    assert len(set(lines)) > 450
    assert lines[0] == SENTENCES.read_text(encoding="utf-8").split("\n")[0]


def test_half_of_the_lines_are_of_each_corpus(tmp_path: Path) -> None:
    for number, name in enumerate(REAL_TEXT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{number} one\n\n{number} two\n", encoding="utf-8")
    assert read_lines(str(tmp_path), 3) == ["0 one", "1 one", "1 two"]


def test_first_lines_are_of_the_corpora_and_without_them_as_many_are_bundled(
    tmp_path: Path,
) -> None:
    counts = {"one": 2, "two": 1}
    for name in counts:
        path = tmp_path / "en-zh" / "dev" / f"{name}.zh"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} 1\n{name} 2\n{name} 3\n", encoding="utf-8")
    assert first_lines(str(tmp_path), counts, language="zh") == ["one 1", "one 2", "two 1"]
    bundled = SENTENCES.read_text(encoding="utf-8").splitlines()
    assert first_lines(None, counts, language="en") == bundled[:3]
    assert len(first_lines(None, {"one": 300, "two": 200}, language="en")) == 500


def test_batches_hold_every_line_within_the_lengths(subject: Subject) -> None:
    samples = list(subject.samples(read_lines(None, 30)))
    assert [len(sample.sources) for sample in samples] == [25, 5]
    end = subject.checkpoint.manifest.tokens.eos_id
    for sample in samples:
        for source, target in zip(sample.sources, sample.targets, strict=True):
            assert len(source) <= MAX_SOURCE
            assert len(target) <= MAX_TARGET
            assert (source[-1], target[-1]) == (end, end)


def test_log_probabilities_are_those_of_the_targets(subject: Subject) -> None:
    (sample,) = subject.samples(read_lines(None, 3))
    number = random.Random(0).randrange(3)
    source, target = sample.sources[number], sample.targets[number]
    with torch.inference_mode():
        fed = torch.tensor([[*sample.prefix, *target]])
        logits = subject.checkpoint.transformer(torch.tensor([source]), fed)[0]
    rows = logits.log_softmax(dim=-1)[len(sample.prefix) - 1 :]
    expected = [float(row[index]) for row, index in zip(rows, target, strict=False)]
    assert subject.log_probs(sample)[number] == pytest.approx(expected, abs=1e-4)
    int8 = subject.int8_log_probs(sample)[number]
    assert int8 == pytest.approx(expected, abs=0.5)
    assert int8 != pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["OPUS-MT", "CTranslate2", "Marian, SSRU student"])
def test_a_weight_that_is_wrong_is_seen(name: str, tmp_path: Path) -> None:
    wrong, family = converted(BY_NAME[name], tmp_path), BY_NAME[name]
    with torch.no_grad():
        wrong.checkpoint.transformer.encoder.layers[0].feed_forward.up_proj.weight[0] += 1.0
    found = Figures(family=name, reference=family.reference, num_sentences=3)
    COMPARISONS[family.reference](wrong, list(wrong.samples(read_lines(None, 3))), found)
    assert not found.logits.is_parity
    assert not found.is_parity


@pytest.mark.parametrize(
    "name",
    ["OPUS-MT", "SMaLL-100", "WMT21", "CTranslate2", "Marian, shallow", "Marian, pre-norm"],
)
def test_a_run_writes_what_it_prints(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sentences", "3", "--only", name, "--results", str(tmp_path)]
    assert main(words) == 0
    (path,) = tmp_path.iterdir()
    (row,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert (row["family"], row["is_parity"], row["num_differing"]) == (name, True, 0)
    assert 0 < row["int8"]["mean"] < row["int8"]["largest"]
    assert row["reference_int8"] is not None
    assert set(row["exported"]) == {
        "OPUS-MT": {"transformers", "CTranslate2"},
        "SMaLL-100": {"CTranslate2"},
        "WMT21": {"transformers", "CTranslate2"},
        "CTranslate2": {"CTranslate2"},
        "Marian, pre-norm": {"CTranslate2"},
    }.get(name, set())
    assert name in capsys.readouterr().out


def test_greedy_hypotheses_are_compared_too(tmp_path: Path) -> None:
    right, family = converted(BY_NAME["OPUS-MT"], tmp_path), BY_NAME["OPUS-MT"]
    found = Figures(family="OPUS-MT", reference=family.reference, num_sentences=3)
    COMPARISONS[family.reference](right, list(right.samples(read_lines(None, 3))), found)
    assert (found.greedy_equal + found.greedy_ties, found.greedy_differing) == (3, 0)


def test_large_vocabularies_have_small_batches(subject: Subject) -> None:
    network = replace(subject.checkpoint.manifest.network, vocab_size=MAX_LOGITS // 2)
    manifest = replace(subject.checkpoint.manifest, network=network)
    checkpoint = replace(subject.checkpoint, manifest=manifest)
    samples = replace(subject, checkpoint=checkpoint).samples(read_lines(None, 5))
    assert [len(sample.sources) for sample in samples] == [2, 2, 1]


def test_at_least_one_sentence_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--sentences", "0"])
    assert "at least one sentence" in capsys.readouterr().err
