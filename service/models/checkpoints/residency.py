"""Residency of checkpoints within a memory budget: which are loaded, and which leave for another.

Owns the arithmetic and the order: pinned ones stay, the least recently used leave first. Pure; it
loads and unloads nothing, which is `service.models.deployments.rollout`.
"""

from collections.abc import Collection, Iterable, Mapping

ENGINE_BYTES = 250 * 2**20
"""What an engine's process takes without a network: Python and PyTorch."""


def resident_at_start(
    sizes: Mapping[str, int], *, pinned: Collection[str], budget: int | None, num_engines: int = 1
) -> frozenset[str]:
    """The checkpoints that are loaded at the start, in each of some engines.

    All of them if they fit; else the pinned ones, or the smallest one if none is pinned: the others
    are loaded by their first requests.

    Args:
        sizes: Bytes of the weights of every checkpoint.
        pinned: Names that are always loaded; one that is not there counts for nothing, and
            `unknown_names` tells of it.
        budget: Bytes that may be taken; None for as many as there are.
        num_engines: How many have them. That they may share weights does not count: what a network
            will be in memory is known when it is there.
    """
    if budget is None or counted_bytes([sizes.values()] * num_engines) <= budget:
        return frozenset(sizes)
    kept = frozenset(sizes).intersection(pinned)
    return kept or frozenset(sorted(sizes, key=lambda name: (sizes[name], name))[:1])


def unknown_names(
    named: Mapping[str, Collection[str]], known: Collection[str]
) -> dict[str, list[str]]:
    """Names that settings have and no checkpoint does, by the setting; none without any.

    Args:
        named: The names of each setting.
        known: Those of all checkpoints.
    """
    unknown = {
        setting: [name for name in names if name not in known] for setting, names in named.items()
    }
    return {setting: names for setting, names in unknown.items() if names}


def counted_bytes(engines: Iterable[Collection[int]]) -> int:
    """Bytes that count against the budget, of engines with weights of these sizes."""
    return sum(ENGINE_BYTES + sum(sizes) for sizes in engines)


def left_for_others(sizes: Collection[int], *, budget: int, num_engines: int = 1) -> int:
    """Bytes that are left beside the engines of the start, with weights of these sizes each."""
    return max(0, budget - counted_bytes([sizes] * num_engines))


def leaving(
    size: int,
    others: Mapping[str, int],
    *,
    used: Mapping[str, float],
    kept: Collection[str],
    budget: int,
) -> list[str] | None:
    """The checkpoints that leave for another one; None if it does not fit even without them.

    Args:
        size: Bytes of the weights of the one that comes; it has an engine of its own.
        others: Those of the ones that may have to leave; each has an engine of its own too.
        used: When each was last used; one that never was goes first.
        kept: Names that must not leave, as the same request needs them.
        budget: Bytes that all of these may take.
    """
    taken = sum(others.values()) + ENGINE_BYTES * len(others)
    excess = taken + size + ENGINE_BYTES - budget
    evicted: list[str] = []
    for name in sorted(others, key=lambda name: (used.get(name, float("-inf")), name)):
        if excess <= 0:
            break
        if name not in kept:
            evicted.append(name)
            excess -= others[name] + ENGINE_BYTES
    return evicted if excess <= 0 else None
