"""The end of every import from Hugging Face's layout: all problems at once, or the model.

Owns that order, and what a folder says of itself in every family: name, licences, tensors and those
that nothing reads.
"""

from collections.abc import Callable

from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.errors import ConfigError
from model.exchange.imports.completeness import misshapen, network_shapes, unread
from model.exchange.imports.huggingface.folder import HuggingFaceFolder
from model.exchange.imports.huggingface.weights import HuggingFaceWeights, TensorMap
from model.exchange.imports.imported import ImportedModel
from model.text.languages.tags import Language, LanguagePair


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
    if weights is None or network is None:
        return complete(folder, None)
    return complete(folder, (network, take(weights, network)))


def complete(
    folder: HuggingFaceFolder, found: tuple[ModelConfig, TensorMap] | None
) -> tuple[ModelConfig, TensorMap]:
    """The network and its tensors, if nothing is wrong with either, nor with the folder.

    Tensors that nothing reads are told beside other problems; alone they fail the conversion.

    Args:
        folder: Has the problems so far.
        found: None where it has a problem that says why.

    Raises:
        ForeignModelError: With every problem.
    """
    if found is not None:
        network, tensors = found
        folder.problems += tensors.problems
        if folder.has_all_sizes:
            folder.problems += _misshapen(network, tensors)
            folder.problems += unread(tensors.unused) if folder.problems else ()
    folder.raise_problems()
    assert found is not None
    return found


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
        ForeignModelError: With every problem of the folder.
    """
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


def _misshapen(network: ModelConfig, tensors: TensorMap) -> list[str]:
    try:
        return list(misshapen(tensors.tensors, network_shapes(network)))
    except ConfigError as error:
        return [f"config.json: {error}"]
