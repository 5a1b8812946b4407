"""Clients that have gone while nothing is read from them, and those that read nothing.

Owns the questions to the system. A client that has closed its connection, and one that has only
closed its own half and waits for the answer, look alike (a FIN) until something is sent: the first
one's system then answers with a reset. What a client has read shows in what its system has
acknowledged: our own keeps megabytes on the way, and takes no more until a third of them are gone.
"""

import asyncio
import fcntl
import select
import sys
import termios

_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the connection was reset, or both halves of it are closed."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # what is asked for is told in any case
    return any(event & _GONE for _, event in poll.poll(0))


def num_unread_bytes(transport: asyncio.Transport) -> int:
    """Bytes of answers that wait here or in our system, and that the client's has not taken."""
    num_bytes = transport.get_write_buffer_size()
    connection = transport.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return num_bytes
    queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))  # an int of C
    return num_bytes + int.from_bytes(queued, sys.byteorder)
