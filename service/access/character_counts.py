"""Characters of each caller since the server started, in constant time and bounded memory.

Owns these sums, which clients ask for as their usage. They limit nothing: what a caller may spend
within a minute is `service.access.rates`.
"""

from collections import OrderedDict

MAX_CALLERS = 100_000


class CharacterCounts:
    """Sums of characters by caller.

    When there are more than `max_callers`, those that sent nothing for longest are forgotten.

    Args:
        max_callers: Most callers that are kept.
    """

    def __init__(self, *, max_callers: int = MAX_CALLERS) -> None:
        self._max_callers = max_callers
        self._sums: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, identity: str, num_characters: int) -> None:
        """Count characters for a caller."""
        self._sums[identity] = self._sums.pop(identity, 0) + num_characters
        if len(self._sums) > self._max_callers:
            self._sums.popitem(last=False)

    def of(self, identity: str) -> int:
        """The characters of a caller; 0 for one that is not known."""
        return self._sums.get(identity, 0)
