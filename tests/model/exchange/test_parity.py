"""Both exports of the bundled checkpoint on real sentences: hypotheses and scores.

20 sentences written for this project run always; 200 by `make test-parity`: real ones from the
folder that DRAGOMAN_DATA names, of which it writes what it found to benchmarks/results/; without
it the bundled ones, varied, of which nothing is written.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest
from transformers import AutoTokenizer, MarianMTModel

from benchmarks.machine import describe_machine
from benchmarks.parity.text import first_lines
from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig, SpecialTokens, StoppingRule
from model.decode.session import DecodeRequest
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.export.huggingface.exporter import export_huggingface
from model.nn.transformer import Transformer
from model.offline.translator import Translator
from model.text.subwords.tokenizer import Tokenizer
from support.huggingface import TIE, Comparison, generate, generate_greedily
from support.teacher_forcing import next_log_probs, token_log_probs

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

ROOT = Path(__file__).parents[3]
SENTENCES = ROOT / "tests" / "support" / "sentences.en"
RESULTS = ROOT / "benchmarks" / "results" / "parity-exchange.json"
REAL_TEXT = {"3am-captions": 100, "docs-heldout": 100}
RULES: list[StoppingRule] = ["first", "heuristic", "bound"]
GREEDY = SearchConfig(beam_size=1, max_length=60)
BATCH = 10
SCORE_TOLERANCE = 1e-3
TOKEN_TOLERANCE = 1e-4
Ids = tuple[int, ...]


@dataclass
class Agreement:
    """A rival's hypotheses against ours, and its scores against our network's."""

    num_sentences: int = 0
    num_equal: int = 0
    num_scores: int = 0
    largest_score_gap: float = 0.0
    ties: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def add_score(
        self, name: str, score: float, expected: float, *, tolerance: float = SCORE_TOLERANCE
    ) -> None:
        gap = abs(score - expected)
        self.num_scores += 1
        self.largest_score_gap = max(self.largest_score_gap, gap)
        if gap > tolerance:
            self.differences.append(f"{name}: score {score:.6f}, expected {expected:.6f}")


@dataclass(frozen=True)
class Rivals:
    translator: Translator
    tokenizer: Tokenizer
    transformer: Transformer
    exported: Path
    twin: MarianMTModel
    rival: "ctranslate2.Translator"
    pieces: list[str]

    @property
    def tokens(self) -> SpecialTokens:
        return self.translator.manifest.tokens

    def requests(self, sentences: Sequence[str], search: SearchConfig) -> list[DecodeRequest]:
        """One a segment, those of like lengths side by side."""
        pair = self.translator.manifest.pairs[0]
        pipeline = self.translator.pipeline
        requests = [
            DecodeRequest(
                source_ids=segment.source_ids, prefix_ids=pipeline.prefix_ids(pair), search=search
            )
            for sentence in sentences
            for segment in pipeline.prepare(sentence, pair).network_segments
        ]
        return sorted(requests, key=lambda request: len(request.source_ids))

    def translations(
        self, requests: Sequence[DecodeRequest]
    ) -> list[tuple[list[Ids], list[float]]]:
        """CTranslate2's hypotheses, with EOS where they end by it, and its scores."""
        search = requests[0].search
        results = self.rival.translate_batch(
            [[self.pieces[index] for index in request.source_ids[:-1]] for request in requests],
            max_batch_size=BATCH,
            beam_size=search.beam_size,
            num_hypotheses=search.num_hypotheses,
            length_penalty=search.length_penalty,
            return_scores=True,
            min_decoding_length=0,
            max_decoding_length=search.max_length - 1,
            return_end_token=True,
            suppress_sequences=[[self.pieces[index]] for index in self.tokens.suppressed_ids],
        )
        ids = {piece: index for index, piece in enumerate(self.pieces)}
        return [
            ([tuple(ids[piece] for piece in found) for found in result.hypotheses], result.scores)
            for result in results
        ]


@pytest.fixture(scope="module")
def rivals(tmp_path_factory: pytest.TempPathFactory) -> Rivals:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "en-zh-small")
    folder = tmp_path_factory.mktemp("exchange")
    export_huggingface(checkpoint, folder / "marian")
    export_ctranslate2(checkpoint, folder / "rival")
    return Rivals(
        translator=Translator(checkpoint),
        tokenizer=checkpoint.tokenizer,
        transformer=checkpoint.transformer,
        exported=folder / "marian",
        twin=MarianMTModel.from_pretrained(folder / "marian").eval(),
        rival=ctranslate2.Translator(
            str(folder / "rival"), compute_type="float32", intra_threads=1
        ),
        pieces=json.loads((folder / "rival" / "shared_vocabulary.json").read_text("utf-8")),
    )


def compare_beams(rivals: Rivals, sentences: Sequence[str], rule: StoppingRule) -> Comparison:
    """Four hypotheses a sentence and their scores, rank by rank, against `generate`."""
    search = SearchConfig(num_hypotheses=4, stopping=rule, max_length=60)
    requests = rivals.requests(sentences, search)
    ours = rivals.translator.search(requests)
    comparison = Comparison()
    for start in range(0, len(requests), BATCH):
        theirs = generate(rivals.twin, rivals.tokens, requests[start : start + BATCH])
        for number, other in enumerate(theirs, start):
            comparison.add(f"sentence {number}", ours[number], other)
    return comparison


def add_greedy(
    agreement: Agreement, rivals: Rivals, number: int, request: DecodeRequest, pair: tuple[Ids, Ids]
) -> None:
    """Ours and theirs: equal, or first different where two candidates are within a tie."""
    agreement.num_sentences += 1
    mine, other = ((*ids, rivals.tokens.eos_id) for ids in pair)
    if mine == other:
        agreement.num_equal += 1
        return
    place = next(i for i, (one, two) in enumerate(zip(mine, other, strict=False)) if one != two)
    row = next_log_probs(rivals.transformer, request.source_ids, request.prefix_ids, mine[:place])[
        -1
    ]
    gap = float(abs(row[mine[place]] - row[other[place]]))
    line = f"sentence {number}, token {place}: two candidates are {gap:.2e} apart"
    (agreement.ties if gap <= TIE else agreement.differences).append(line)


def compare_greedy(rivals: Rivals, sentences: Sequence[str]) -> dict[str, Agreement]:
    """Hypotheses of both rivals, and CTranslate2's scores."""
    requests = rivals.requests(sentences, GREEDY)
    ours = [found[0].token_ids for found in rivals.translator.search(requests)]
    huggingface, agreement = Agreement(), Agreement()
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        for number, other in enumerate(generate_greedily(rivals.twin, rivals.tokens, batch), start):
            add_greedy(huggingface, rivals, number, requests[number], (ours[number], other))
    for number, ((ids,), (score,)) in enumerate(rivals.translations(requests)):
        request = requests[number]
        body = tuple(index for index in ids if index != rivals.tokens.eos_id)
        add_greedy(agreement, rivals, number, request, (ours[number], body))
        agreement.add_score(f"sentence {number}", score, expected_score(rivals, request, ids))
    return {"huggingface": huggingface, "ctranslate2": agreement}


def expected_score(rivals: Rivals, request: DecodeRequest, ids: Ids) -> float:
    """CTranslate2's score by our network: Σ log p / n^α, n counting an EOS that was reached."""
    log_probs = token_log_probs(
        rivals.transformer,
        request.source_ids,
        request.prefix_ids,
        ids,
        suppressed_ids=rivals.tokens.suppressed_ids,
    )
    return float(sum(log_probs) / len(ids) ** request.search.length_penalty)


def compare_beam_scores(rivals: Rivals, sentences: Sequence[str]) -> Agreement:
    """CTranslate2's four hypotheses; the best is compared with ours, which may stop elsewhere."""
    search = SearchConfig(num_hypotheses=4, stopping="first", max_length=60)
    requests = rivals.requests(sentences, search)
    ours = rivals.translator.search(requests)
    agreement = Agreement()
    for number, (hypotheses, scores) in enumerate(rivals.translations(requests)):
        agreement.num_sentences += 1
        best = tuple(index for index in hypotheses[0] if index != rivals.tokens.eos_id)
        agreement.num_equal += best == ours[number][0].token_ids
        for rank, (ids, score) in enumerate(zip(hypotheses, scores, strict=True)):
            expected = expected_score(rivals, requests[number], ids)
            agreement.add_score(f"sentence {number}, hypothesis {rank}", score, expected)
    return agreement


def compare_tokens(
    rivals: Rivals, sentences: Sequence[str], references: Sequence[str]
) -> Agreement:
    """The log probability of every token of given translations, by CTranslate2's `score_batch`."""
    pair = rivals.translator.manifest.pairs[0]
    end, longest = rivals.tokens.eos_id, rivals.translator.manifest.limits.max_source_length
    sources = [rivals.tokenizer.encode(text, pair)[:-1][: longest - 1] for text in sentences]
    targets = [rivals.tokenizer.encode_target(text)[:-1][: longest - 1] for text in references]
    results = rivals.rival.score_batch(
        [[rivals.pieces[index] for index in ids] for ids in sources],
        [[rivals.pieces[index] for index in ids] for ids in targets],
        max_batch_size=BATCH,
    )
    agreement = Agreement()
    prefix = [rivals.tokens.start_id]
    for number, (source, target, result) in enumerate(zip(sources, targets, results, strict=True)):
        agreement.num_sentences += 1
        ours = token_log_probs(rivals.transformer, [*source, end], prefix, [*target, end])
        for place, (score, expected) in enumerate(zip(result.log_probs, ours, strict=True)):
            name = f"sentence {number}, token {place}"
            agreement.add_score(name, score, expected, tolerance=TOKEN_TOLERANCE)
    return agreement


def compare_all(
    rivals: Rivals, sentences: Sequence[str], references: Sequence[str]
) -> dict[str, dict[str, object]]:
    beams = {f"huggingface beam 4, {r}": compare_beams(rivals, sentences, r) for r in RULES}
    greedy = {f"{n} greedy": a for n, a in compare_greedy(rivals, sentences).items()}
    scores = {
        "ctranslate2 beam 4": compare_beam_scores(rivals, sentences),
        "ctranslate2 given translations": compare_tokens(rivals, sentences, references),
    }
    return {name: _compared(found) for name, found in (beams | greedy | scores).items()}


def _compared(found: Comparison | Agreement) -> dict[str, object]:
    """Its counts and lists, but for what was not counted."""
    return {name: value for name, value in asdict(found).items() if value != 0}


def test_twenty_sentences_agree(rivals: Rivals) -> None:
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()[:20]
    for found in compare_all(rivals, sentences, own_translations(rivals, sentences)).values():
        assert found["num_sentences"] == 20
        assert found["differences"] == []


def test_the_tokenizer_that_is_exported_gives_our_ids_and_text(rivals: Rivals) -> None:
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    theirs, pair = (
        AutoTokenizer.from_pretrained(rivals.exported),
        rivals.translator.manifest.pairs[0],
    )
    assert theirs(sentences).input_ids == [
        rivals.tokenizer.encode(sentence, pair) for sentence in sentences
    ]
    for found in rivals.translator.translate(sentences[:4], pair):
        ids = rivals.tokenizer.encode_target(found.text)
        assert theirs.decode(ids, skip_special_tokens=True) == found.text


def own_translations(rivals: Rivals, sentences: Sequence[str]) -> list[str]:
    pair = rivals.translator.manifest.pairs[0]
    return [found.text for found in rivals.translator.translate(sentences, pair)]


@pytest.mark.parity
@pytest.mark.timeout(3600)
def test_many_sentences_agree(rivals: Rivals) -> None:
    data = os.environ.get("DRAGOMAN_DATA")
    sentences = first_lines(data, REAL_TEXT, language="en")
    if data:
        references = first_lines(data, REAL_TEXT, language="zh")
    else:
        references = own_translations(rivals, sentences)
    found = compare_all(rivals, sentences, references)
    result = {
        "what": "exported directories against the checkpoint, float32: equal hypotheses; scores"
        f" within {SCORE_TOLERANCE}, log probabilities of given tokens within {TOKEN_TOLERANCE};"
        f" ties are candidates within {TIE}",
        "checkpoint": rivals.translator.manifest.name,
        "text": REAL_TEXT,
        "machine": describe_machine(),
        "rivals": {name: version(name) for name in ("transformers", "ctranslate2")},
        "comparisons": found,
    }
    if data:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    assert all(comparison["differences"] == [] for comparison in found.values())
