"""Upper bounds of histograms: their resolution, and its cost in series."""

_PER_DECADE = (
    1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.65, 1.8, 1.95, 2.1, 2.3, 2.5, 2.75, 3.0, 3.3, 3.6, 3.9, 4.2,
    4.6, 5.0, 5.5, 6.0, 6.6, 7.2, 7.9, 8.6, 9.4,
)  # fmt: skip

FINEST_SECONDS = 0.005
COARSEST_SECONDS = 30.0

# However observations lie within a bucket, a quantile that is read from it is off by the bucket's
# width at most: bounds that are a tenth apart are what "within 10%" takes. Below 5 ms there is no
# translation, and above 30 s a tenth says nothing more. That is 107 bounds a set of labels; so
# these histograms are told apart by route and priority, some twelve sets in all, never by pair.
SECONDS = (
    0.001,
    0.0025,
    *(
        bound
        for scale in (0.001, 0.01, 0.1, 1.0, 10.0)
        for step in _PER_DECADE
        if FINEST_SECONDS <= (bound := round(step * scale, 6)) <= COARSEST_SECONDS
    ),
    60.0,
    300.0,
)
LAG_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.5, 2.0)
LOAD_SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0)

# These have a set of series for every pair, so they are coarse.
CHARACTERS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
TOKENS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
