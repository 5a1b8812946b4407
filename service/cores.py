"""Processors of engines: all that may be used but those of the processes beside them.

Owns how many these are. Which processors an engine has is `service.placement`.
"""


def cores_beside_engines(num_fronts: int = 1) -> int:
    """Cores of the fronts, and where there are several, of the process that owns them.

    Args:
        num_fronts: Front processes; one alone is its own owner.
    """
    return num_fronts if num_fronts == 1 else num_fronts + 1


def engine_threads(num_usable: int, *, num_fronts: int = 1) -> int:
    """Threads for an engine that is alone; at least 1, however many processes are beside it.

    Args:
        num_usable: Processors' worth of time that there is.
        num_fronts: Front processes.
    """
    return max(1, num_usable - cores_beside_engines(num_fronts))
