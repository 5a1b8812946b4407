"""What Linux says of a processor, of both families, and where it says nothing."""

from pathlib import Path

import pytest

from model.system.processor import has_feature


@pytest.mark.parametrize("key", ["flags\t\t", "Features\t"])
def test_a_feature_is_a_whole_word_among_those_of_the_first_processor(
    key: str, tmp_path: Path
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{key}: fpu amx_bf16 avx2\n\nprocessor\t: 1\n")
    assert has_feature("amx_bf16", cpuinfo=path)
    assert not has_feature("amx", cpuinfo=path)


def test_where_nothing_is_said_there_is_none(tmp_path: Path) -> None:
    assert not has_feature("avx2", cpuinfo=tmp_path / "missing")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\n")
    assert not has_feature("avx2", cpuinfo=tmp_path / "cpuinfo")
