"""The conversation with Marian: what it is asked, how its answers are read, what counts."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from benchmarks.parity.__main__ import full_families, parse_arguments, reduced_families
from benchmarks.parity.families import FULL, REDUCED
from benchmarks.parity.figures import INT8_TOKENS, Figures
from benchmarks.parity.marian import (
    Marian,
    compare_live,
    defined_log_probs,
    has_int8,
    other_lines,
)
from benchmarks.parity.subject import MAX_SOURCE, Subject, converted
from support.int8_reference import Int8Reference
from support.marian_oracle import FIXTURES, MarianHypothesis, expected

BY_NAME = {family.name: family for family in REDUCED}
REPLAY = """#!/bin/sh
cat > '{folder}/asked'
echo "$@" >> '{folder}/words'
cat '{folder}/answers'
"""


Said = Sequence[tuple[str, list[MarianHypothesis]]]


def replaying(folder: Path, said: Said) -> str:
    """A program that says what Marian said, in Marian's own form."""
    lines = [
        f"{number} ||| {' '.join(one.pieces)} ||| WordScores= {_numbers(one.word_scores)}"
        f" ||| F0= 0 ||| {one.score}"
        for number, (_, hypotheses) in enumerate(said)
        for one in hypotheses
    ]
    (folder / "answers").write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = folder / "python"
    program.write_text(REPLAY.format(folder=folder), encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(map(str, values))


HELD = """#!/bin/sh
case "$*" in
*" convert "*) touch '{folder}/is_int8' ;;
*--force-decode*) cat "{folder}/held$(cat '{folder}/is_int8' 2>/dev/null && echo 8)" ;;
*) cat '{folder}/answers' ;;
esac
"""


def held(folder: Path, subject: Subject, lines: Sequence[str], *, off: float) -> str:
    """A program that says of given translations what we say in float32, and in int8 is off."""
    scores = []
    for source, target in other_lines(subject, lines):
        encoded = subject.checkpoint.tokenizer.encode(source, subject.pair)
        given = subject.given([encoded], [subject.checkpoint.tokenizer.encode_target(target)])
        scores.append([*subject.log_probs(given)[0][:-1], -1.5, -2.5])  # it goes on of itself
    for name, change in (("held", 0.0), ("held8", off)):
        text = [
            f"0 ||| pieces ||| WordScores= {_numbers(tuple(value + change for value in row))} ||| 0"
            for row in scores
        ]
        (folder / name).write_text("\n".join(text) + "\n", encoding="utf-8")
    program = folder / "python"
    program.write_text(HELD.format(folder=folder), encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return converted(BY_NAME["Marian, SSRU student"], tmp_path_factory.mktemp("marian"))


def whole(subject: Subject) -> Said:
    """What Marian said of sentences that are not cut."""
    encode = subject.checkpoint.tokenizer.encode
    found = [one for one in expected("student") if len(encode(one[0], subject.pair)) <= MAX_SOURCE]
    assert len(found) > 4
    return found


def test_its_lists_are_read_with_pieces_and_the_score_of_every_word(tmp_path: Path) -> None:
    marian = Marian.of(replaying(tmp_path, expected("student")), FIXTURES / "student")
    texts = [text for text, _ in expected("student")]
    assert marian.reads_text
    assert marian.decoded(texts) == [hypotheses for _, hypotheses in expected("student")]
    assert (tmp_path / "asked").read_text(encoding="utf-8").splitlines() == texts
    words = (tmp_path / "words").read_text(encoding="utf-8")
    assert words.startswith("-m pymarian decode -m ")
    assert "--no-spm-decode" in words


def test_a_table_beside_sentencepiece_files_wants_pieces(tmp_path: Path) -> None:
    marian = Marian.of(replaying(tmp_path, expected("opus")), FIXTURES / "opus")
    assert not marian.reads_text
    marian.decoded([text for text, _ in expected("opus")])
    assert "--no-spm-decode" not in (tmp_path / "words").read_text(encoding="utf-8")


def test_a_program_that_fails_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no such model >&2\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="pymarian decode: no such model"):
        Marian.of(str(program), FIXTURES / "student").decoded(["a"])


def test_network_and_export_are_compared_with_what_marian_says(
    subject: Subject, tmp_path: Path
) -> None:
    figures = Figures(family="student", reference="marian")
    said = whole(subject)
    python = replaying(tmp_path, said)
    compare_live(subject, [text for text, _ in said], figures, tmp_path, python=python)
    assert (figures.num_equal, figures.num_differing) == (4 * len(said), 0)
    assert figures.exported["Marian"].largest == 0.0
    assert figures.is_parity


@pytest.mark.parametrize(("off", "verdict"), [(0.5, "within"), (0.001, "beyond")])
def test_its_int8_and_ours_are_compared_on_the_same_pieces(
    tmp_path: Path, off: float, verdict: str
) -> None:
    (tmp_path / "subject").mkdir()
    shallow = converted(BY_NAME["Marian, shallow"], tmp_path / "subject")
    encode = shallow.checkpoint.tokenizer.encode
    said = [one for one in expected("int8") if len(encode(one[0], shallow.pair)) <= MAX_SOURCE]
    texts = [text for text, _ in said]
    replaying(tmp_path, said)
    python = held(tmp_path, shallow, texts, off=off)
    figures = Figures(family="shallow", reference="marian")
    compare_live(shallow, texts, figures, tmp_path, python=python)
    assert figures.int8_beside is not None
    assert figures.reference_int8 is not None
    assert figures.int8_alike is not None
    assert figures.int8_defined is not None
    assert figures.int8_beside.mean == pytest.approx(figures.int8_defined.mean, rel=0.1)
    assert figures.reference_int8.num == figures.int8_beside.num >= INT8_TOKENS
    assert 0 < figures.int8_alike.mean < 0.5
    assert figures.reference_int8.mean == pytest.approx(off, rel=1e-3)
    assert figures.logits.is_parity
    assert (figures.int8_verdict, figures.is_parity) == (verdict, verdict == "within")


def test_what_marian_leaves_in_float32_is_left_so_in_the_definition(subject: Subject) -> None:
    checkpoint = subject.checkpoint
    network, state = checkpoint.manifest.network, checkpoint.transformer.state_dict()
    sources = [checkpoint.tokenizer.encode(text, subject.pair) for text, _ in whole(subject)]
    targets = [checkpoint.tokenizer.encode_target(text) for text, _ in whole(subject)]
    given = subject.given(sources, targets)
    float32 = [*chain(*subject.log_probs(given))]
    int8 = [*chain(*subject.int8_log_probs(given))]
    kernels, alike = (
        [
            *chain(
                *defined_log_probs(Int8Reference(network, state, has_float_tables=is_alike), given)
            )
        ]
        for is_alike in (False, True)
    )
    assert kernels == pytest.approx(int8, abs=5e-3), "halves in caches, float32 sums"
    gaps = [
        sum(abs(one - exact) for one, exact in zip(found, float32, strict=True))
        for found in (alike, int8)
    ]
    assert 0 < gaps[0] < gaps[1]


def test_its_int8_is_asked_where_it_is_made_for_the_network(subject: Subject) -> None:
    network = subject.checkpoint.manifest.network
    assert not has_int8(network), "32 wide"
    wide = replace(network, d_model=64, d_ff=128, vocab_size=681)
    assert has_int8(wide)
    assert not has_int8(replace(wide, vocab_size=682))
    assert not has_int8(replace(wide, decoder_d_ff=40))
    assert not has_int8(replace(wide, tie_output=False))


def test_another_answer_of_the_export_is_a_difference(subject: Subject, tmp_path: Path) -> None:
    figures = Figures(family="student", reference="marian")
    said = whole(subject)
    texts = [text for text, _ in said]
    replaying(tmp_path, said)
    script = (tmp_path / "python").read_text(encoding="utf-8")
    changed = script + f"sed -i 's/^0 ||| [^ ]*/0 ||| x/' '{tmp_path}/answers'\n"
    (tmp_path / "python").write_text(changed, encoding="utf-8")
    compare_live(subject, texts, figures, tmp_path, python=str(tmp_path / "python"))
    assert figures.num_differing > 0
    assert not figures.is_parity


def test_lines_are_cut_to_the_tokens_that_a_source_may_have(
    subject: Subject, tmp_path: Path
) -> None:
    python = replaying(tmp_path, expected("student")[:1])
    figures = Figures(family="student", reference="marian")
    compare_live(subject, ["word " * 300], figures, tmp_path, python=python)
    assert not figures.is_parity  # it was another sentence
    asked = (tmp_path / "asked").read_text(encoding="utf-8").strip()
    ids = subject.checkpoint.tokenizer.encode(asked, subject.pair)
    assert MAX_SOURCE - 8 < len(ids) <= MAX_SOURCE


def test_networks_that_marian_makes_are_there_where_it_is() -> None:
    assert reduced_families(None) == list(REDUCED)
    assert full_families(None, None) == list(FULL)
    names = {family.name for family in (*reduced_families("python"), *full_families("p", None))}
    assert {"own, SSRU", "Marian, Firefox size"} <= names


def test_a_name_that_no_network_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--only", "own, SSRU"])
    assert "'own, SSRU' is none of" in capsys.readouterr().err
    assert parse_arguments(["--only", "own, SSRU", "--marian", "p"]).marian == "p"


def test_what_is_written_of_our_own_networks_is_an_export(tmp_path: Path) -> None:
    (family,) = [one for one in reduced_families("python") if one.name == "own, SSRU"]
    source = family.write(tmp_path)
    names = sorted(path.name for path in source.iterdir())
    expected = ["README.md", "decoder.yml", "dragoman.json", "model.npz", "vocab.enzh_hans.spm"]
    assert names == expected
