"""A folder of tiny checkpoints: two for one pair, and two that make a way through a pivot."""

from pathlib import Path

from model.text.languages.tags import LanguagePair
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

DE_EN = LanguagePair(source="de", target="en")


def write_several(folder: Path) -> Path:
    """`german` de → en, `small` en → zh-Hans, `both` en ↔ zh-Hans; each network is another one."""
    folder.mkdir()
    write_tiny_checkpoint(folder / "a", name="both", pairs=(EN_ZH, ZH_EN), seed=12)
    write_tiny_checkpoint(folder / "b", name="german", pairs=(DE_EN,), seed=15)
    write_tiny_checkpoint(folder / "c", name="small", pairs=(EN_ZH,), seed=18)
    return folder
