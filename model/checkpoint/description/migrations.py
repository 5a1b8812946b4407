"""Schemas of config.json: what keys they have, and how an older one becomes the newest.

Owns the version numbers, the keys that every file of a schema has, and one pure function from each
older schema to the next. It does not own the types (`model.checkpoint.manifest`), which describe
the newest schema only, or the file (`model.checkpoint.description.config_file`).

Schema 1 is closed: it has exactly the keys below, all of them in every file. Schema 2 has the same
and, besides, fields with defaults that may be left out: a field of a dataclass of the manifest that
is not among these keys. Its default must mean what checkpoints did before there was such a field,
and can never change.
"""

from collections.abc import Callable, Iterator, Mapping

from model.conversion import Problem, key_in_place

JsonObject = dict[str, object]

NEWEST_SCHEMA = 2


def _keys(names: str) -> frozenset[str]:
    return frozenset(names.split())


SCHEMA_1_KEYS: Mapping[str, frozenset[str]] = {
    "": _keys(
        "schema_version name description licence network tokens pairs limits licences tensors files"
    ),
    "network": _keys(
        "vocab_size target_vocab_size d_model num_heads d_ff num_encoder_layers "
        "num_decoder_layers d_k d_v activation norm norm_placement norm_epsilon position "
        "position_offset max_positions scale_embedding share_embeddings tie_output "
        "output_bias attention_bias dropout attention_dropout activation_dropout pad_id"
    ),
    "tokens": _keys("pad_id eos_id unk_id start_id suppressed_ids forced_first_id"),
    "pairs[]": _keys("source target source_prefix target_prefix"),
    "limits": _keys("max_source_length max_target_length"),
    "licences[]": _keys("corpus licence url"),
    "tensors.*": _keys("shape dtype quantisation"),
    "files": _keys(
        "weights source_tokenizer target_tokenizer source_vocabulary target_vocabulary card"
    ),
}
"""Keys of the objects of a file: `[]` stands for any item of a list, `.*` for any key."""


def migrate(config: JsonObject) -> JsonObject:
    """The same description in the newest schema; `config` stays as it is.

    Args:
        config: Of a schema from 1 to the newest, which `schema_version` says.
    """
    while (version := config["schema_version"]) != NEWEST_SCHEMA:
        assert isinstance(version, int)
        config = _MIGRATIONS[version](config)
    return config


def key_problems(config: JsonObject) -> list[Problem]:
    """Keys that a file must have and has not, and those that its schema does not know.

    What only schema 2 can have is not looked at: `model.conversion` refuses what no field has.
    """
    is_closed = config["schema_version"] == 1
    problems = []
    for place, pattern, found in _objects(config):
        keys, prefix = SCHEMA_1_KEYS[pattern], f"{place}." if place else ""
        problems += [
            Problem(place=prefix + key, text="is missing") for key in sorted(keys - found.keys())
        ]
        problems += [
            Problem(place=prefix + key_in_place(key), text="is unknown")
            for key in found
            if is_closed and key not in keys
        ]
    return problems


def _objects(config: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Every object of a file with its place and its pattern; what is none is left out."""
    yield "", "", config
    for pattern in filter(None, SCHEMA_1_KEYS):
        name = pattern.removesuffix("[]").removesuffix(".*")
        value = config.get(name)
        below: Iterator[tuple[str, object]]
        if pattern == name:
            below = iter([(name, value)])
        elif pattern.endswith("[]"):
            items = value if isinstance(value, list) else []
            below = ((f"{name}[{index}]", item) for index, item in enumerate(items))
        else:
            entries = value if isinstance(value, dict) else {}
            below = ((f"{name}.{key_in_place(key)}", item) for key, item in entries.items())
        for place, item in below:
            if isinstance(item, dict):
                yield place, pattern, item


def _from_1(config: JsonObject) -> JsonObject:
    """Schema 2 has all of schema 1, under the same keys."""
    return {**config, "schema_version": 2}


_MIGRATIONS: Mapping[int, Callable[[JsonObject], JsonObject]] = {1: _from_1}
