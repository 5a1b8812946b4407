"""Arithmetic of decoding: its kinds, and the reasons why a checkpoint has the one that it has.

Owns the names alone, which settings, messages and replies share. Which one a network gets is
`model.loading`. Imports no torch.
"""

from typing import Literal

ComputeType = Literal["auto", "int8", "float32", "bfloat16"]
"""Arithmetic of decoding: "auto" is bfloat16 on a GPU, int8 on a CPU whose kernels are there,
else float32."""
ComputeReason = Literal["best", "asked_for", "processor", "not_built", "network"]
"""Why a checkpoint has its arithmetic: there is none faster here; it was asked for; or the
int8 kernels are not for this processor, were not built, or do not run the network."""
