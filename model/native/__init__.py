"""int8 decoding on CPUs: kernels in C++ (`src/`), and the Python that packs weights for them.

The extension is built when the package is installed. Where it is not there, or the processor
lacks what it needs, `kernels.find_problem` says so and the network runs in PyTorch.
"""
