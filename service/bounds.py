"""Upper bounds that settings share with requests and with the files of keys.

Owns numbers that hold in several rooms, so that none of these has to import another one for them.
A bound that concerns one room alone is declared there.
"""

MAX_BEAM_SIZE = 16
"""Hypotheses that a request's search keeps at every step."""

MAX_PER_MINUTE = 1_000_000_000
"""Requests or characters that a rate limit may allow within a minute."""

MAX_REPLICAS = 256
"""Engines of one deployment, and so series of metrics that each of them has of its own."""

MAX_FRONTS = 64
"""Processes that answer requests on one port."""

MIN_IDLE_TIMEOUT_SECONDS = 15.0
"""That a server keeps a connection at least on which nothing comes: routers, which keep theirs for
less, then never send a request on one that is being closed."""
