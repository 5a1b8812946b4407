"""Every backend and export says yes or no to every field of a network."""

from dataclasses import dataclass, fields, replace
from typing import get_args

import pytest

from model.config import (
    Activation,
    DecoderCell,
    ModelConfig,
    NormKind,
    NormPlacement,
    PositionKind,
)
from model.decode.backends.cuda.network import GRID_FIELDS
from model.decode.backends.eager.incremental import EAGER_FIELDS
from model.errors import UnsupportedVariantError
from model.exchange.export.ctranslate2 import CTRANSLATE2_FIELDS
from model.exchange.export.huggingface.exporter import FAMILIES
from model.exchange.export.huggingface.marian import MARIAN_FIELDS
from model.exchange.export.marian.network import MARIAN_NATIVE_FIELDS
from model.honoured import (
    EVERY_VALUE,
    Condition,
    HonouredFields,
    check_honoured,
    unsupported_fields,
)
from model.native.network import INT8_FIELDS

DECLARATIONS = [EAGER_FIELDS, GRID_FIELDS, INT8_FIELDS, MARIAN_FIELDS, CTRANSLATE2_FIELDS]
ALL_FAMILIES = [*(family.fields for family in FAMILIES), MARIAN_NATIVE_FIELDS]
CHOICES = {
    "decoder_cell": DecoderCell,
    "activation": Activation,
    "norm": NormKind,
    "norm_placement": NormPlacement,
    "position": PositionKind,
}
CONFIG = ModelConfig(vocab_size=9, d_model=16, num_heads=2)

every_one_and_family = pytest.mark.parametrize(
    "honoured", [*DECLARATIONS, *ALL_FAMILIES[1:]], ids=lambda honoured: honoured.by
)
everyone = pytest.mark.parametrize("honoured", DECLARATIONS, ids=lambda honoured: honoured.by)


@every_one_and_family
def test_every_field_of_a_network_is_declared_and_no_other(honoured: HonouredFields) -> None:
    assert sorted(honoured.fields) == sorted(field.name for field in fields(ModelConfig))


@every_one_and_family
def test_of_a_field_with_choices_each_is_named_or_refused(honoured: HonouredFields) -> None:
    for name, choices in CHOICES.items():
        allowed = honoured.fields[name]
        assert isinstance(allowed, tuple), f"{name}: a new choice would be honoured unseen"
        assert set(allowed) <= set(get_args(choices))


@everyone
def test_the_default_network_is_honoured(honoured: HonouredFields) -> None:
    check_honoured(CONFIG, honoured)


@everyone
def test_positions_inside_attention_are_refused_with_what_is_allowed(
    honoured: HonouredFields,
) -> None:
    for position in ("rope", "alibi"):
        with pytest.raises(
            UnsupportedVariantError, match=f"{honoured.by} .*network.position is '{position}' \\("
        ) as caught:
            check_honoured(replace(CONFIG, position=position), honoured)
        assert "'sinusoidal-marian'" in str(caught.value)


@everyone
def test_a_field_that_is_not_declared_is_refused_whatever_its_value(
    honoured: HonouredFields,
) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Grown(ModelConfig):
        gate: str | None = None

    problems = unsupported_fields(Grown(vocab_size=9), honoured)
    assert problems == ["network.gate is None (only networks without this field)"]


@pytest.mark.parametrize(
    ("honoured", "num_honoured"), [(MARIAN_FIELDS, 1), (CTRANSLATE2_FIELDS, 7)]
)
def test_exports_refuse_by_name_what_other_families_have(
    honoured: HonouredFields, num_honoured: int
) -> None:
    foreign = {
        "decoder_d_ff": 64,
        "gated_feed_forward": True,
        "feed_forward_bias": False,
        "embedding_norm": True,
        "scale_attention": False,
        "scale_output": True,
        "activation": "gelu-sigmoid",
        "d_v": 5,
        "decoder_cell": "ssru",
    }
    problems = unsupported_fields(replace(CONFIG, **foreign), honoured)
    names = sorted(problem.split(" is ")[0] for problem in problems)
    assert names == sorted(f"network.{name}" for name in list(foreign)[num_honoured:])


def test_all_fields_that_are_not_honoured_are_listed_at_once() -> None:
    honoured = HonouredFields(
        by="a toy",
        fields={field.name: EVERY_VALUE for field in fields(ModelConfig)}
        | {
            "norm": ("layernorm",),
            "activation": ("relu", "gelu"),
            "d_ff": Condition(name="d_model or less", holds=lambda c: c.d_ff <= c.d_model),
        },
    )
    network = replace(CONFIG, norm="rmsnorm", activation="silu")
    with pytest.raises(UnsupportedVariantError) as caught:
        check_honoured(network, honoured)
    assert str(caught.value) == (
        "a toy does not run this network: network.d_ff is 2048 (only d_model or less);"
        " network.activation is 'silu' (only 'relu' or 'gelu');"
        " network.norm is 'rmsnorm' (only 'layernorm')"
    )
    check_honoured(replace(network, norm="layernorm", activation="gelu", d_ff=16), honoured)


def test_both_backends_with_caches_in_pytorch_honour_the_same_networks() -> None:
    """`opening` asks one of them what is left for the plain backend, on either device."""
    assert EAGER_FIELDS.fields == GRID_FIELDS.fields
