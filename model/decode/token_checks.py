"""Checks of the tokens that a sentence names, before anything is computed for it."""

from collections.abc import Sequence

from model.config import SpecialTokens
from model.errors import InputError
from model.phrases import check_phrases
from model.request import DecodeRequest


def check_tokens(
    requests: Sequence[DecodeRequest], *, vocab_size: int, tokens: SpecialTokens
) -> None:
    """Return if every id that requests name is one of the target vocabulary's.

    Raises:
        InputError: One is not; or phrases are such as no search can be held to.
    """
    for request in requests:
        for name in ("suppressed", "forced"):
            for token in getattr(request, f"{name}_ids"):
                if not 0 <= token < vocab_size:
                    raise InputError(
                        f"a {name} id is {token}; the vocabulary has {vocab_size} tokens",
                        value=token,
                        limit=vocab_size,
                    )
        if request.phrases:
            _check_phrases(request, vocab_size=vocab_size, tokens=tokens)


def _check_phrases(request: DecodeRequest, *, vocab_size: int, tokens: SpecialTokens) -> None:
    if request.search.sampling is not None:
        raise InputError(
            f"a sentence that is drawn has {len(request.phrases)} phrases; it may have 0",
            value=len(request.phrases),
            limit=0,
        )
    if request.search.num_groups > 1:
        raise InputError(
            f"a sentence searched by {request.search.num_groups} groups of beams has"
            f" {len(request.phrases)} phrases; it may have 0",
            value=len(request.phrases),
            limit=0,
        )
    never = frozenset((tokens.eos_id, *tokens.suppressed_ids, *request.suppressed_ids))
    check_phrases(request.phrases, vocab_size=vocab_size, never=never)
