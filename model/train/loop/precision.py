"""The arithmetic of a run, where its experiment leaves it to the machine.

Owns the choice, which is the same for all workers. A CPU computes in bfloat16 faster than in
float32 only where it multiplies tiles of it (AMX); with AVX-512's dot products alone, conversions
and packing take more than they give.
`python -m benchmarks.training` compares both.
"""

import torch

from model.system.processor import has_feature
from model.train.config.run import Precision, PrecisionName
from model.train.loop.distributed import Group


def precision_on(device: torch.device, name: PrecisionName) -> Precision:
    """What is computed in on a device: "auto" is the faster one there.

    Args:
        device: Where to train.
        name: As the experiment has it.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        is_faster = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        is_faster = device.type == "cpu" and has_feature("amx_bf16")
    return "bfloat16" if is_faster else "float32"


def common_precision(group: Group, device: torch.device, name: PrecisionName) -> Precision:
    """What all workers compute in: the first one's choice, so that a sum is of one arithmetic.

    Args:
        group: The workers; each calls this.
        device: Of this one.
        name: As the experiment has it, or on the first worker what the run began in.
    """
    precision = precision_on(device, name)
    is_low = group.broadcast_number(float(precision == "bfloat16"), device)
    return "bfloat16" if is_low else "float32"
