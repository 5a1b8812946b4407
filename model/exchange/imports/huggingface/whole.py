"""The end of every import from Hugging Face's layout: all problems at once, or the model.

Owns that order, and what a folder says of itself in every family: name, licences, tensors and those
that nothing reads.
"""

from collections.abc import Callable

from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.exchange.imports.huggingface.folder import HuggingFaceFolder
from model.exchange.imports.huggingface.weights import HuggingFaceWeights, TensorMap
from model.exchange.imports.imported import ImportedModel
from model.text.language import Language, LanguagePair


def checked_tensors(
    folder: HuggingFaceFolder,
    weights: HuggingFaceWeights | None,
    network: ModelConfig | None,
    take: Callable[[HuggingFaceWeights, ModelConfig], TensorMap],
) -> tuple[ModelConfig, TensorMap]:
    """The network and its tensors; asked for when everything else has been looked at.

    Args:
        folder: Has the problems so far, which are there wherever one of the next two is None.
        weights: Of the folder.
        network: What config.json describes.
        take: Finds the tensors of the network.

    Raises:
        ForeignModelError: With every problem.
    """
    tensors = None
    if weights is not None and network is not None:
        tensors = take(weights, network)
        folder.problems += tensors.problems
    folder.raise_problems()
    assert network is not None
    assert tensors is not None
    return network, tensors


def whole_model(
    folder: HuggingFaceFolder,
    tensors: TensorMap,
    *,
    family: str,
    description: str,
    network: ModelConfig,
    tokens: SpecialTokens,
    pairs: tuple[LanguagePair, ...],
    limits: LengthLimits,
    tokenizer: TokenizerParts,
    notes: tuple[str, ...] = (),
    languages: tuple[Language, ...] = (),
) -> ImportedModel:
    """What an importer gives, with what the folder says of itself.

    Raises:
        ForeignModelError: With every problem of the folder and of the tensors.
    """
    folder.problems += tensors.problems
    folder.raise_problems()
    return ImportedModel(
        family=family,
        format="Hugging Face",
        name=folder.name,
        description=description,
        licence=folder.licence,
        licences=folder.licences,
        network=network,
        tokens=tokens,
        pairs=pairs,
        limits=limits,
        tokenizer=tokenizer,
        tensors=tensors.tensors,
        unused=tensors.unused,
        notes=notes,
        languages=languages,
    )
