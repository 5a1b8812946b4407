"""The card of a trained checkpoint: its network, training data and scores.

Owns the text. The figures come from the run; nothing is claimed that was not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from model.nn.transformer import Transformer
from model.offline.evaluate import Scores
from model.train.config.experiment import Experiment
from model.train.data.filtering import CorpusReport
from model.train.saved.state import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """Facts of a finished run.

    Attributes:
        progress: Updates, tokens, time.
        reports: What became of each training corpus, in the experiment's order.
        copies: How often a pair of each of them occurs in an epoch, temperature applied; the card
            has three digits of what a temperature changed.
        weights: Which snapshots the weights are made of, in words.
        scores: By corpus, such as "test/newstest2019", in the order they are listed.
        beam_size: Of the scores.
        compute_type: Arithmetic of the scores, empty before there are any.
    """

    progress: Progress
    reports: Sequence[CorpusReport]
    copies: Sequence[float]
    weights: str
    scores: Mapping[str, Scores]
    beam_size: int
    compute_type: str


def write_card(
    experiment: Experiment, transformer: Transformer, facts: CardFacts, *, command: str
) -> str:
    """The card, Markdown.

    Args:
        experiment: What was run.
        transformer: The network.
        facts: What came of it.
        command: The command that makes the checkpoint again.
    """
    sections = [
        f"# {experiment.name}\n\n{experiment.description}",
        experiment.notes.strip(),
        _network(experiment, transformer),
        _data(experiment, facts),
        _training(experiment, facts, command),
        _scores(experiment, facts),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _network(experiment: Experiment, transformer: Transformer) -> str:
    config, vocabulary = transformer.config, experiment.vocabulary
    num_parameters = sum(parameter.numel() for parameter in transformer.parameters())
    kind = "BPE" if vocabulary.kind == "bpe" else "unigram"
    side = "joint" if vocabulary.is_joint else "separate"
    return (
        "## Network\n\n"
        f"Transformer, {config.num_encoder_layers} encoder and {config.num_decoder_layers}"
        f" decoder layers, d_model {config.d_model}, d_ff {config.d_ff}, {config.num_heads}"
        f" heads, {config.norm_placement}-norm, {config.activation}, positions {config.position};"
        f" {num_parameters:,} parameters. {side.capitalize()} SentencePiece {kind} vocabulary of"
        f" {config.vocab_size:,} pieces. Sentences of up to {experiment.data.max_length} tokens."
    )


def _data(experiment: Experiment, facts: CardFacts) -> str:
    corpora = [
        (f"{direction.name}: " if experiment.data.is_tagged else "", corpus)
        for direction in experiment.data.directions
        for corpus in direction.train
    ]
    rows = [
        (
            prefix + (corpus.label if corpus.url is None else f"[{corpus.label}]({corpus.url})"),
            f"{report.num_kept:,}",
            f"{copies if copies == corpus.copies else float(f'{copies:.3g}'):.12g}",
            corpus.licence,
        )
        for (prefix, corpus), report, copies in zip(
            corpora, facts.reports, facts.copies, strict=True
        )
    ]
    table = markdown_table(("corpus", "pairs", "times an epoch", "licence"), rows)
    return (
        "## Training text\n\n"
        f"{table}\n\nThe weights are under {experiment.licence}; the corpora's authors are"
        " credited by this table."
    )


def _training(experiment: Experiment, facts: CardFacts, command: str) -> str:
    progress = facts.progress
    millions = (progress.num_source_tokens + progress.num_target_tokens) / 1e6
    num_epochs = progress.position.epoch
    return (
        "## Training\n\n"
        f"```\n{command}\n```\n\n"
        f"{progress.update:,} updates in {progress.elapsed_seconds / 60:.0f} minutes,"
        f" {millions:.1f} million tokens (source and target), {num_epochs} whole"
        f" {'epoch' if num_epochs == 1 else 'epochs'}; {experiment.run.precision},"
        f" seed {experiment.run.seed}. Weights: {facts.weights}, stored as int8 rows."
    )


def _scores(experiment: Experiment, facts: CardFacts) -> str:
    if not facts.scores:
        return ""
    rows = [
        (name, f"{scores.bleu.value:.2f}", f"{scores.chrf.value:.2f}")
        for name, scores in facts.scores.items()
    ]
    found = facts.scores.values()
    signatures = sorted({metric.signature for s in found for metric in (s.bleu, s.chrf)})
    listed = "\n".join(f"- `{signature}`" for signature in signatures)
    is_tokenised = experiment.run.bleu_tokenizer == "none"
    text = "tokenised text as it stands" if is_tokenised else "detokenised text"
    return (
        f"## Scores\n\nBeam {facts.beam_size}, {text}, of the stored int8 weights,"
        f" computed in {facts.compute_type}.\n\n"
        f"{markdown_table(('corpus', 'BLEU', 'chrF2'), rows)}\n\nsacrebleu signatures:\n\n{listed}"
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; its cells are Markdown, in which a bar ends none."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
    )
