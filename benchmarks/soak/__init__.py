"""Long proofs: what the server promises when things go wrong, tried on real processes.

`python -m benchmarks.soak` runs all of it, or what `--only` names; `plan.py` says how long. One
file a scenario; each starts servers of its own on loopback, judges what it saw and ends by itself.
"""
