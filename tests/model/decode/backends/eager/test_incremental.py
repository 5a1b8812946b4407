"""What the fast path refuses, it refuses by name."""

import pytest

from model.decode.backends.eager.backend import EagerBackend
from model.decode.session import DecodingSession
from model.errors import UnsupportedVariantError
from support.search_cases import LIMITS, TOKENS, small_transformer


@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_positions_inside_attention_are_refused(position: str) -> None:
    transformer = small_transformer(position=position)
    with pytest.raises(UnsupportedVariantError, match=f"position is '{position}'"):
        DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=EagerBackend)
