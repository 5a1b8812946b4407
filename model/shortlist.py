"""Lexical shortlists: which target tokens a sentence may choose, by its source tokens.

Owns the table and the set that it makes of a sentence, which is that sentence's own: no other one
changes it. It does not own files (`model.checkpoint.shortlist`, and those of other programs in
`model.exchange.imports`), nor how a table is made of text (`model.train.lexicon`). The int8 kernels
make the same sets themselves (`native/src/shortlist.cpp`). Loads no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.config import SpecialTokens
from model.request import DecodeRequest

Ids = npt.NDArray[np.int32]

STEP = 8
"""Every set has a multiple of so many tokens, as in Marian: probabilities depend on the set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shortlist:
    """A table of target tokens by source token.

    Attributes:
        always: (N,) int32, target tokens that every sentence may choose.
        offsets: (S + 1,) int32, where the tokens of each source token begin in `ids`.
        ids: (L,) int32, target tokens, source token by source token.
        with_source: Source tokens may be chosen too: both sides have one vocabulary.
    """

    always: Ids
    offsets: Ids
    ids: Ids
    with_source: bool

    def tokens(
        self, source_ids: Sequence[int], also: Sequence[int], *, vocab_size: int
    ) -> npt.NDArray[np.int64]:
        """What a sentence may choose, ascending.

        These are the tokens of all its source tokens, those of `always`, the source tokens
        themselves if `with_source`, and `also`; then the smallest others, until their number is a
        multiple of `STEP` (marian-dev, `src/data/shortlist.cpp`).

        Args:
            source_ids: Of the sentence, EOS included.
            also: Further tokens: EOS, and what is forced.
            vocab_size: Target tokens.
        """
        is_listed = np.zeros(vocab_size, dtype=bool)
        is_listed[self.always] = True
        is_listed[list(also)] = True
        for token in source_ids:
            is_listed[self.ids[self.offsets[token] : self.offsets[token + 1]]] = True
        if self.with_source:
            is_listed[list(source_ids)] = True
        missing = -int(is_listed.sum()) % STEP
        is_listed[np.flatnonzero(~is_listed)[:missing]] = True
        return np.flatnonzero(is_listed)


def tokens_of_request(
    shortlist: Shortlist, request: DecodeRequest, tokens: SpecialTokens, *, vocab_size: int
) -> npt.NDArray[np.int64]:
    """What the search of a request may choose: EOS and all that is forced included.

    Args:
        shortlist: Of the network.
        request: The sentence.
        tokens: The vocabulary's special tokens.
        vocab_size: Target tokens.
    """
    forced = () if tokens.forced_first_id is None else (tokens.forced_first_id,)
    words = (token for phrase in request.phrases for path in phrase for token in path)
    also = (tokens.eos_id, *forced, *request.prefix_ids[1:], *request.forced_ids, *words)
    return shortlist.tokens(request.source_ids, also, vocab_size=vocab_size)


def shortlist_problems(shortlist: Shortlist, *, num_sources: int, num_targets: int) -> list[str]:
    """Everything in which a table does not fit its vocabularies, as sentence fragments.

    Args:
        shortlist: The table.
        num_sources: Source tokens.
        num_targets: Target tokens.
    """
    offsets, problems = shortlist.offsets, []
    if len(offsets) != num_sources + 1:
        problems.append(f"offsets has {len(offsets)} numbers; {num_sources + 1} are needed")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(shortlist.ids):
        problems.append(f"offsets does not go from 0 to {len(shortlist.ids)}")
    elif (np.diff(offsets) < 0).any():
        problems.append("offsets falls somewhere")
    for name in ("always", "ids"):
        values = getattr(shortlist, name)
        wrong = values[(values < 0) | (values >= num_targets)]
        if len(wrong):
            problems.append(f"{name} has {wrong[0]}; it must be from 0 to {num_targets - 1}")
    if shortlist.with_source and num_sources != num_targets:
        problems.append(
            f"with_source is true for {num_sources} source and {num_targets} target tokens"
        )
    return problems
