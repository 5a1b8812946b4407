"""Dragoman against the engines that a user would pick instead: offline, served, memory.

`python -m benchmarks.peers` measures and prints the marks; `python -m benchmarks.peers.report`
draws what was measured. README.md beside this package says how the comparison is kept fair.
"""
