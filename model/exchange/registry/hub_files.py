"""Choice of the files of a hub's repository that a conversion needs.

Owns the choice between several forms of the same weights, by the names alone: safetensors before
pickles, the plain form before variants, nothing of other frameworks. Pure.
"""

import re
from collections.abc import Sequence

_SAFETENSORS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
_SAFETENSORS_INDEX = "model.safetensors.index.json"
_PICKLES = re.compile(r"pytorch_model(-\d{5}-of-\d{5})?\.bin")
_PICKLES_INDEX = "pytorch_model.bin.index.json"
_CTRANSLATE2 = "model.bin"
_MARIAN = re.compile(r".+\.(npz|intgemm[0-9a-z.]*\.bin)")
_ARCHIVES = re.compile(r".+\.(zip|argosmodel)")
_SMALL = re.compile(
    r".+\.(json|spm|model|txt|yml|yaml|codes|bpe|vocab)|(README|LICEN[CS]E|NOTICE|COPYING).*"
    r"|tokenization_small100\.py",
    re.IGNORECASE,
)
"""Text files; the one program among them says by its name which family a network is of, and is
never run."""
_OF_OTHERS = re.compile(
    r".+\.(h5|msgpack|ot|onnx|gguf|tflite|safetensors)|(tf_|flax_|rust_).*|training_args\.bin"
    r"|(optimizer|scheduler|rng_state|scaler).*|trainer_state\.json|all_results\.json"
    r"|.*events\.out\..*",
    re.IGNORECASE,
)


def needed_files(names: Sequence[str]) -> list[str]:
    """The names that are downloaded, in their order; none where there are no weights.

    Files in folders are left out: there repositories keep other forms, such as ONNX.
    """
    top = [name for name in names if "/" not in name and not name.startswith(".")]
    weights = _weights(top)
    if not weights:
        return []
    small = {name for name in top if _SMALL.fullmatch(name) and not _OF_OTHERS.fullmatch(name)}
    small -= {_SAFETENSORS_INDEX, _PICKLES_INDEX}
    return [name for name in top if name in weights or name in small]


def archive_among(needed: Sequence[str]) -> str | None:
    """The archive that holds the model, None where files of their own do.

    Args:
        needed: What `needed_files` says.
    """
    archives = [name for name in needed if _ARCHIVES.fullmatch(name)]
    return archives[0] if archives else None


def _weights(top: Sequence[str]) -> set[str]:
    """The first form of weights that is there."""
    for pattern, index in ((_SAFETENSORS, _SAFETENSORS_INDEX), (_PICKLES, _PICKLES_INDEX)):
        found = {name for name in top if pattern.fullmatch(name)}
        if found:
            whole = {name for name in found if "-of-" not in name}
            return whole or found | ({index} & set(top))
    if _CTRANSLATE2 in top:
        return {_CTRANSLATE2}
    marian = {name for name in top if _MARIAN.fullmatch(name)}
    archives = {name for name in top if _ARCHIVES.fullmatch(name)}
    return marian or (archives if len(archives) == 1 else set())
