"""model.bin as CTranslate2's specification writes it, and wrote it in each version."""

import struct
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from model.exchange.imports.ctranslate2.file import NEWEST_VERSION

CODES = {
    torch.float32: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.float16: 4,
    torch.bfloat16: 5,
}


def name_bytes(name: str) -> bytes:
    data = name.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def variable_bytes(name: str, value: Tensor, version: int) -> bytes:
    head = name_bytes(name) + struct.pack(f"<B{value.dim()}I", value.dim(), *value.shape)
    data = bytes(value.contiguous().flatten().view(torch.uint8).tolist())
    if version >= 4:
        return head + struct.pack("<BI", CODES[value.dtype], len(data)) + data
    return head + struct.pack("<BI", value.element_size(), value.numel()) + data


def model_bytes(
    variables: Mapping[str, Tensor],
    *,
    version: int = NEWEST_VERSION,
    aliases: Sequence[tuple[str, str]] = (),
) -> bytes:
    """A file as CTranslate2's specification writes it, or wrote it."""
    data = struct.pack("<I", version) + name_bytes("TransformerSpec") + struct.pack("<I", 7)
    data += struct.pack("<I", len(variables))
    data += b"".join(variable_bytes(name, value, version) for name, value in variables.items())
    if version >= 3:
        data += struct.pack("<I", len(aliases))
        data += b"".join(name_bytes(one) + name_bytes(two) for one, two in aliases)
    return data
