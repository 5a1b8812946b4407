"""The bundled checkpoint against Hugging Face `generate`, hypothesis for hypothesis.

100 sentences written for this project run always; 500 by `make test-parity`: real ones from the
folder that DRAGOMAN_DATA names, of which it writes what it found to benchmarks/results/; without
it the bundled ones, varied, of which nothing is written.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from transformers import MarianMTModel

from benchmarks.machine import describe_machine
from benchmarks.parity.text import first_lines
from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig, StoppingRule
from model.decode.session import DecodeRequest
from model.offline.translator import Translator
from support.huggingface import Comparison, generate, marian_twin

ROOT = Path(__file__).parents[3]
SENTENCES = ROOT / "tests" / "support" / "sentences.en"
RESULTS = ROOT / "benchmarks" / "results" / "parity-huggingface.json"
REAL_TEXT = {"3am-captions": 250, "docs-heldout": 250}
RULES: list[StoppingRule] = ["first", "heuristic", "bound"]
BATCH = 10


@dataclass(frozen=True)
class Rivals:
    translator: Translator
    twin: MarianMTModel


@pytest.fixture(scope="module")
def rivals() -> Rivals:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "en-zh-small")
    twin = marian_twin(checkpoint.transformer, checkpoint.manifest.tokens)
    return Rivals(Translator(checkpoint), twin)


def compare(rivals: Rivals, sentences: list[str], rule: StoppingRule) -> Comparison:
    """Four hypotheses a sentence from both, in batches of like lengths."""
    pair = rivals.translator.manifest.pairs[0]
    search = SearchConfig(beam_size=4, num_hypotheses=4, stopping=rule, max_length=60)
    prefix_ids = rivals.translator.pipeline.prefix_ids(pair)
    requests = [
        DecodeRequest(source_ids=segment.source_ids, prefix_ids=prefix_ids, search=search)
        for sentence in sentences
        for segment in rivals.translator.pipeline.prepare(sentence, pair).network_segments
    ]
    requests.sort(key=lambda request: len(request.source_ids))
    comparison = Comparison()
    ours = rivals.translator.search(requests)
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        theirs = generate(rivals.twin, rivals.translator.manifest.tokens, batch)
        for offset, other in enumerate(theirs):
            comparison.add(f"sentence {start + offset}", ours[start + offset], other)
    return comparison


@pytest.mark.parametrize("rule", RULES)
def test_a_hundred_sentences_give_what_generate_gives(rivals: Rivals, rule: StoppingRule) -> None:
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    comparison = compare(rivals, sentences, rule)
    assert comparison.num_sentences >= 100
    assert comparison.differences == []
    assert len(comparison.ties) <= 4


@pytest.mark.parity
@pytest.mark.timeout(3600)
def test_many_sentences_give_what_generate_gives(rivals: Rivals) -> None:
    data = os.environ.get("DRAGOMAN_DATA")
    sentences = first_lines(data, REAL_TEXT, language="en")
    found = {rule: compare(rivals, sentences, rule) for rule in RULES}
    result = {
        "what": "four hypotheses a sentence, beam 4, against Hugging Face generate, float32",
        "checkpoint": rivals.translator.manifest.name,
        "text": REAL_TEXT,
        "machine": describe_machine(),
        "rules": {rule: asdict(comparison) for rule, comparison in found.items()},
    }
    if data:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    assert all(comparison.differences == [] for comparison in found.values())
