"""Detection of clients that have gone while nothing is read from them.

Owns the question to the system. A client that has closed its connection, and one that has only
closed its own half and waits for the answer, look alike (a FIN) until something is sent: the first
one's system then answers with a reset.
"""

import asyncio
import select

_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the connection was reset, or both halves of it are closed."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # what is asked for is told in any case
    return any(event & _GONE for _, event in poll.poll(0))
