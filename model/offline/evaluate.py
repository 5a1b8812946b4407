"""BLEU and chrF of detokenised text, by sacrebleu, with the signatures that make them comparable.

Owns the scores and how a translator is scored. Does not own reading files or printing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from model.config import SearchConfig
from model.errors import ConfigError, DataError
from model.offline.translator import Translator
from model.text.languages.scripts import HAN, UNSPACED_SCRIPTS, script_of_language
from model.text.languages.tags import LanguagePair, primary_language

TOKENIZERS = ("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none")
"""sacrebleu's tokenizers that may be asked for by name."""

_TOKENIZERS_BY_LANGUAGE = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One corpus score.

    Attributes:
        name: "BLEU" or "chrF2".
        value: 0 to 100.
        signature: sacrebleu's: what must agree before two scores may be compared.
    """

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} ({self.signature})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """BLEU (Papineni et al. 2002; Post 2018) and chrF (Popović 2015) of one corpus."""

    bleu: Score
    chrf: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Scores and the translations they are of, in the order of the sources."""

    scores: Scores
    hypotheses: tuple[str, ...]


def default_tokenizer(language: str) -> str:
    """The sacrebleu tokenizer for a target language given by its BCP-47 tag.

    Languages in Chinese characters have `zh`, those of other scripts without spaces `char`: to 13a
    a sentence of theirs would be one word, and BLEU 0.0 for all but perfect translations.
    """
    own = _TOKENIZERS_BY_LANGUAGE.get(primary_language(language))
    if own is not None:
        return own
    script = script_of_language(language)
    if script == HAN:
        return "zh"
    return "char" if script in UNSPACED_SCRIPTS else "13a"


def check_tokenizer(tokenizer: str) -> None:
    """Check by scoring a full stop that a tokenizer can be used, before hours of work.

    Raises:
        ConfigError: It is unknown, or its package is not installed.
    """
    score(["."], ["."], tokenizer=tokenizer)


def score(hypotheses: Sequence[str], references: Sequence[str], *, tokenizer: str) -> Scores:
    """Score a corpus of detokenised translations against one reference each.

    Args:
        hypotheses: Translations.
        references: As many references.
        tokenizer: One of `TOKENIZERS`, applied to both sides by BLEU; chrF needs none.

    Raises:
        ConfigError: The tokenizer is unknown, or its package is not installed.
        DataError: There is nothing to score, or the numbers differ.
    """
    if tokenizer not in TOKENIZERS:
        raise ConfigError(f"tokenizer is {tokenizer!r}; it must be one of {', '.join(TOKENIZERS)}")
    if not hypotheses:
        raise DataError("there is no translation to score")
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations and {len(references)} references; scores need one"
            " reference for each"
        )
    try:
        bleu = BLEU(tokenize=tokenizer, force=tokenizer == "none")  # no word on its tokens
    except (ImportError, RuntimeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"tokenizer {tokenizer!r} cannot be used: {problem}") from error
    chrf = CHRF()
    values = [metric.corpus_score(hypotheses, [references]).score for metric in (bleu, chrf)]
    return Scores(
        bleu=Score(name="BLEU", value=values[0], signature=str(bleu.get_signature())),
        chrf=Score(name="chrF2", value=values[1], signature=str(chrf.get_signature())),
    )


def nearest(candidates: Sequence[str], reference: str) -> str:
    """The candidate with the highest sentence chrF against a reference; the first of equal ones.

    What sequence-level interpolation learns from (Kim and Rush 2016, section 3.3), by chrF, which
    needs no words.
    """
    metric = CHRF()
    return max(candidates, key=lambda line: metric.sentence_score(line, [reference]).score)


def evaluate(
    translator: Translator,
    pair: LanguagePair,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    search: SearchConfig | None = None,
    tokenizer: str | None = None,
    on_finished: Callable[[int], None] | None = None,
) -> Evaluation:
    """Translate and score, with the decoder that serves.

    Args:
        translator: Of the checkpoint to score.
        pair: One of its directions.
        sources: Texts.
        references: One for each.
        search: None for the defaults.
        tokenizer: As in `score`; None chooses by the target language.
        on_finished: As in `Translator.translate`.

    Raises:
        ConfigError: As `score`.
        DataError: As `score`.
    """
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} sources and {len(references)} references; they must match")
    translations = translator.translate(sources, pair, search, on_finished=on_finished)
    hypotheses = tuple(translation.text for translation in translations)
    chosen = tokenizer or default_tokenizer(pair.target)
    return Evaluation(scores=score(hypotheses, references, tokenizer=chosen), hypotheses=hypotheses)
