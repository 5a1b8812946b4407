"""Hugging Face's M2M100 and what has its network: NLLB-200, SMaLL-100, WMT21.

Owns config.json's meaning for `M2M100ForConditionalGeneration`, and the four vocabularies: which
pieces tell the languages, where their ids are, and on which side they stand. NLLB's mixtures of
experts are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import ModelConfig
from model.errors import ForeignModelError
from model.exchange.carried import CARRIED_KEY, is_carried
from model.exchange.imports.completeness import unfilled
from model.exchange.imports.huggingface.bart import (
    bart_layers,
    bart_limits,
    bart_network,
    bart_tables,
    bart_tokens,
    with_nameless,
)
from model.exchange.imports.huggingface.folder import HuggingFaceFolder, model_type
from model.exchange.imports.huggingface.forced import Directions, forced_language, into_forced
from model.exchange.imports.huggingface.weights import TensorMap, opened_weights
from model.exchange.imports.huggingface.whole import complete, whole_model
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import (
    FAMILIES,
    NLLB_LEGACY_PROBLEM,
    TokenFamily,
    chosen_directions,
)
from model.exchange.imports.languages import FLORES_CODES, flores_tag
from model.text.languages.tags import Language, LanguagePair
from model.text.subwords.pieces import PieceModel

SPM_FILE = "sentencepiece.bpe.model"
_TABLE_FILE = "vocab.json"
_M2M100_CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha"
    " he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my"
    " ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz"
    " vi wo xh yi yo zh zu"
)
_WMT21_CODES = "en ha is ja cs ru zh de"
LANGUAGE_CODES: Mapping[str, str] = {"m2m100": _M2M100_CODES, "wmt21": _WMT21_CODES}
"""Codes in the order of their tags' ids, by what tokenizer_config.json calls them."""
_FAMILIES = ("m2m100", "small100")
"""Those of tags that both have, which a person may tell apart."""
SMALL100_FILE = "tokenization_small100.py"
"""A tokenizer that SMaLL-100 brings; it is never run."""
_NOTES = ("Tags of languages in a text are text; transformers takes them for tokens.",)
_MAX_ID_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vocabulary:
    """Vocabulary of one family, from its files.

    Attributes:
        family: For people.
        file: Where it is.
        table: Piece → id, tags among them.
        languages: Those that it has tags for.
    """

    family: str
    file: str
    table: Mapping[str, int]
    languages: tuple[Language, ...]


class HuggingFaceM2M100:
    """The importer of folders whose model_type is m2m_100."""

    name = "Hugging Face M2M100, NLLB or SMaLL-100"
    families = (*_FAMILIES, "nllb")

    def recognises(self, source: Path) -> bool:
        """Whether config.json says so."""
        return model_type(source) in {"m2m_100", "nllb-moe"}

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Everything but the weights.

        Raises:
            ForeignModelError: With every problem.
        """
        folder = HuggingFaceFolder(source)
        if folder.config["model_type"] == "nllb-moe":
            raise ForeignModelError(source, ["is a mixture of experts; only dense networks are"])
        found = _network(folder)
        spm, pieces = folder.pieces(SPM_FILE)
        vocabulary = _vocabulary(folder, pieces, found, options)
        if found is not None and "</s>" in vocabulary.table:  # else tags alone could be read
            size = found[0].vocab_size
            folder.problems += unfilled(vocabulary.file, len(vocabulary.table), size)
        languages, pairs, notes = _directions(folder, vocabulary, options)
        tokens = bart_tokens(folder, unk_id=vocabulary.table.get("<unk>", 3))
        limits = bart_limits(folder)
        network, tensors = complete(folder, found)
        target_table = vocabulary.table if languages else _written(vocabulary, pairs)
        return whole_model(
            folder,
            tensors,
            family=vocabulary.family,
            description=f"{folder.name}, converted from Hugging Face",
            network=network,
            tokens=with_nameless(tokens, target_table, network.output_size),
            pairs=pairs,
            limits=limits,
            tokenizer=TokenizerParts(
                source_pieces=spm, source_table=vocabulary.table, target_table=target_table
            ),
            notes=(*_NOTES, *notes),
            languages=languages,
        )


def _network(folder: HuggingFaceFolder) -> tuple[ModelConfig, TensorMap] | None:
    """The network and its tensors; None, and problems, where it or its files cannot be read."""
    shape = bart_network(folder, activation="relu", scale_embedding=True)
    weights = opened_weights(folder)
    is_tied = folder.flag("tie_word_embeddings", default=True)
    if shape is None or weights is None:
        return None
    shape = replace(
        shape,
        norm_placement="pre",
        position="sinusoidal-m2m100",
        position_offset=shape.pad_id + 1,
    )
    tensors = TensorMap(weights)
    network = bart_tables(shape, weights, tensors, is_shared=True, is_tied=is_tied)
    bart_layers(network, tensors)
    tensors.drop(*(name for name in weights if ".embed_positions." in name))
    return network, tensors


def _directions(
    folder: HuggingFaceFolder, vocabulary: _Vocabulary, options: ImportOptions
) -> Directions:
    """Those asked for, or all; where a tag is forced, that language is the only target.

    None where the vocabulary could not be read, which is a problem that is told.
    """
    if not vocabulary.languages:
        return (), (), ()
    languages, pairs, problems = chosen_directions(
        vocabulary.languages, options.pairs, names=folder.names
    )
    folder.problems += problems
    if options.pairs:
        return languages, pairs, ()
    tagged = (
        (vocabulary.table[tag], language)
        for language in vocabulary.languages
        for tag in language.target_prefix
    )
    return into_forced(folder, languages, pairs, forced_language(folder, tagged))


def _written(vocabulary: _Vocabulary, pairs: Sequence[LanguagePair]) -> dict[str, int]:
    """The table without tags that ask for none of the directions, which are never written."""
    tags = {
        tag
        for language in vocabulary.languages
        for tag in (*language.source_prefix, *language.wanted_prefix)
    }
    unused = tags.difference(*(pair.target_prefix for pair in pairs))
    return {piece: index for piece, index in vocabulary.table.items() if piece not in unused}


def _vocabulary(
    folder: HuggingFaceFolder,
    pieces: PieceModel | None,
    found: tuple[ModelConfig, TensorMap] | None,
    options: ImportOptions,
) -> _Vocabulary:
    kind = str(folder.tokenizer.get("tokenizer_class") or "")
    is_small100 = _is_small100(folder, kind)
    is_wmt21 = not is_small100 and folder.tokenizer.get("language_codes") == "wmt21"
    has_no_table = not kind.startswith("M2M100") and not folder.has(_TABLE_FILE)
    is_nllb = kind.startswith("Nllb") or (has_no_table and not is_small100 and not is_wmt21)
    possible = ("nllb",) if is_nllb else ("m2m100",) if is_wmt21 else _FAMILIES
    if options.family is not None and options.family not in possible:
        title = "NLLB's" if is_nllb else "WMT21's" if is_wmt21 else "M2M100's"
        folder.problems.append(f"its tokenizer is {title}; --family {options.family} is another")
    if is_nllb:
        return _nllb(folder, pieces)
    if is_wmt21:
        return _tagged_pieces(folder, _WMT21_CODES, FAMILIES["m2m100"], title="WMT21")
    if options.family in _FAMILIES:
        is_small100 = options.family == "small100"
    elif not is_small100 and found is not None:
        _check_depths(folder, found[0])
    return _tagged_pieces(folder, _M2M100_CODES, FAMILIES["small100" if is_small100 else "m2m100"])


def _is_small100(folder: HuggingFaceFolder, kind: str) -> bool:
    """Whether it is SMaLL-100, whose files may name M2M100's tokenizer, which it is loaded with."""
    is_named = any("small100" in name.lower() for name in folder.names)
    return kind == "SMALL100Tokenizer" or folder.has(SMALL100_FILE) or is_named


def _check_depths(folder: HuggingFaceFolder, network: ModelConfig) -> None:
    """Refuse what may be SMaLL-100 though nothing says so: it is asked for languages otherwise.

    It alone of those that are published has fewer layers in its decoder. What Dragoman exported is
    M2M100.
    """
    is_shallow = network.num_decoder_layers < network.num_encoder_layers
    if is_shallow and not is_carried(folder.config.get(CARRIED_KEY)):
        folder.problems.append(
            "its decoder has fewer layers than its encoder, as SMaLL-100's, and no file says"
            " whether it is one; --family m2m100 or --family small100 does"
        )


def _tagged_pieces(
    folder: HuggingFaceFolder, codes: str, family: TokenFamily, *, title: str | None = None
) -> _Vocabulary:
    """A table in vocab.json, and a tag a language behind it, in the order of the codes."""
    table = dict(folder.vocabulary(_TABLE_FILE))
    size, tags = len(table), [code_piece(code) for code in codes.split()]
    table |= {piece: size + number for number, piece in enumerate(tags)}
    return _Vocabulary(
        family=title or family.title,
        file=_TABLE_FILE,
        table=table,
        languages=family.languages(tags),
    )


def code_piece(code: str) -> str:
    """The tag of one of M2M100's codes."""
    return f"__{code}__"


def _nllb(folder: HuggingFaceFolder, pieces: PieceModel | None) -> _Vocabulary:
    """SentencePiece's numbering and one, then the codes of FLORES-200, then the mask."""
    if folder.tokenizer.get("legacy_behaviour"):
        folder.problems.append(NLLB_LEGACY_PROBLEM)
    if pieces is None:
        return _Vocabulary(family="NLLB", file=SPM_FILE, table={}, languages=())
    table = nllb_pieces(pieces)
    first = len(pieces) + 1
    table |= _stated_codes(folder) or {
        code: first + number for number, code in enumerate(FLORES_CODES)
    }
    family = FAMILIES["nllb"]
    languages = family.languages(table)
    return _Vocabulary(family=family.title, file=SPM_FILE, table=table, languages=languages)


def nllb_pieces(pieces: PieceModel) -> dict[str, int]:
    """The numbering of NLLB's pieces, without tags: SentencePiece's and one."""
    table = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    return table | {pieces.own_piece(index): index + 1 for index in range(3, len(pieces))}


def _stated_codes(folder: HuggingFaceFolder) -> dict[str, int]:
    """Codes with their ids where tokenizer_config.json has them, or tokenizer.json.

    Since its version 5 transformers writes them into the latter alone.
    """
    added = folder.tokenizer.get("added_tokens_decoder")
    found = {}
    for index, token in added.items() if isinstance(added, dict) else ():
        content = token.get("content") if isinstance(token, dict) else None
        if not isinstance(content, str) or not flores_tag(content) or not index.isdecimal():
            continue
        if len(index) > _MAX_ID_DIGITS:
            folder.problems.append(
                f"tokenizer_config.json: added_tokens_decoder has an id of {len(index)} digits"
            )
        else:
            found[content] = int(index)
    fast = folder.added_tokens or {}
    return found | {
        content: index
        for content, index in fast.items()
        if type(index) is int and flores_tag(content)
    }
