"""What a processor can do beside the kernels that are compiled here, as Linux tells it."""

from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def has_feature(name: str, *, cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the processor has a feature, such as `amx_bf16`; false where nobody says so.

    Args:
        name: As Linux calls it.
        cpuinfo: Where Linux says it.
    """
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = (line.partition(":") for line in text.splitlines())
    features = next((value for key, _, value in lines if key.strip() in ("flags", "Features")), "")
    return name in features.split()
