"""Everything that is measured on a GPU, in one command of less than nine minutes.

    python -m benchmarks.gpu [--data DATA] [--device cpu --quick]

On a CPU the same code runs with steps that are not recorded: that is how it is tried out.
"""
