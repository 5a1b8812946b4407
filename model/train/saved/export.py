"""A trained network as a checkpoint: in memory to be scored, on disk to be served.

Owns the contents of the manifest: special tokens, languages, limits, licences. The format is
`model.checkpoint`'s, the text of the card `model.train.records.card`'s.
"""

from pathlib import Path

from model.checkpoint.manifest import CheckpointFiles, Licence, Manifest
from model.checkpoint.weights import Checkpoint, TokenizerParts, save_checkpoint
from model.config import LengthLimits, SpecialTokens
from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair
from model.train.config.experiment import Experiment, direction_pair
from model.train.data.vocabulary import EOS_ID, PAD_ID, START_ID, UNK_ID, Vocabularies

TOKENS = SpecialTokens(
    pad_id=PAD_ID,
    eos_id=EOS_ID,
    unk_id=UNK_ID,
    start_id=START_ID,
    suppressed_ids=(PAD_ID, UNK_ID),
)


def language_pairs(experiment: Experiment) -> tuple[LanguagePair, ...]:
    """The directions that are trained.

    Raises:
        InputError: A language is not a BCP-47 tag.
    """
    return tuple(direction_pair(experiment, item) for item in experiment.data.directions)


def length_limits(experiment: Experiment) -> LengthLimits:
    """Length limits of the checkpoint: those of training, on both sides."""
    longest = experiment.data.max_length
    return LengthLimits(max_source_length=longest, max_target_length=longest)


def corpus_licences(experiment: Experiment) -> tuple[Licence, ...]:
    """The licence of every training corpus, once where several directions share it."""
    found = {
        Licence(corpus=corpus.name, licence=corpus.licence, url=corpus.url): None
        for direction in experiment.data.directions
        for corpus in direction.train
    }
    return tuple(found)


def memory_checkpoint(
    experiment: Experiment, vocabularies: Vocabularies, transformer: Transformer
) -> Checkpoint:
    """A checkpoint in host memory around a network in training, for the decoder that serves."""
    manifest = Manifest(
        name=experiment.name,
        description=experiment.description,
        licence=experiment.licence,
        network=transformer.config,
        tokens=TOKENS,
        pairs=language_pairs(experiment),
        limits=length_limits(experiment),
        licences=corpus_licences(experiment),
        tensors={},
        files=CheckpointFiles(),
    )
    tokenizer = _tokenizer_parts(vocabularies).build(manifest)
    return Checkpoint(manifest=manifest, transformer=transformer, tokenizer=tokenizer)


def export_checkpoint(
    directory: Path,
    *,
    experiment: Experiment,
    vocabularies: Vocabularies,
    transformer: Transformer,
    card: str,
) -> Manifest:
    """Write the checkpoint that is served; see `model.checkpoint.weights.save_checkpoint`."""
    return save_checkpoint(
        directory,
        transformer=transformer,
        name=experiment.name,
        description=experiment.description,
        licence=experiment.licence,
        tokens=TOKENS,
        pairs=language_pairs(experiment),
        limits=length_limits(experiment),
        licences=corpus_licences(experiment),
        tokenizer=_tokenizer_parts(vocabularies),
        card=card,
    )


def _tokenizer_parts(vocabularies: Vocabularies) -> TokenizerParts:
    target = None if vocabularies.is_joint else vocabularies.target_path.read_bytes()
    return TokenizerParts(source_pieces=vocabularies.source_path.read_bytes(), target_pieces=target)
