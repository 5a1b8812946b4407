from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.ft2font import FT2Font

from model.explain.labels import Fonts, Label, installed_fonts, label_pieces, unshown
from model.explain.sentence import Piece

_BUNDLED = Path(mpl.get_data_path()) / "fonts" / "ttf"
OWN = _BUNDLED / "DejaVuSans.ttf"
MATHS = _BUNDLED / "STIXGeneral.ttf"


def characters(path: Path) -> set[int]:
    return set(FT2Font(str(path)).get_charmap())


ONLY_MATHS = chr(min(characters(MATHS) - characters(OWN)))


def piece(text: str, token_id: int = 17) -> Piece:
    return Piece(token_id=token_id, text=text)


def test_a_label_is_written_in_the_first_font_that_has_all_of_its_characters() -> None:
    fonts = Fonts([OWN, MATHS])
    assert label_pieces([piece("▁cat"), piece(ONLY_MATHS), piece("é")], fonts) == [
        Label(text="▁cat", font=OWN),
        Label(text=ONLY_MATHS, font=MATHS),
        Label(text="é", font=OWN),
    ]


def test_a_piece_that_no_font_shows_is_named_by_its_number() -> None:
    fonts = Fonts([OWN])
    pieces = [piece("猫", 5), piece("cat"), piece("▁猫狗", 6)]
    assert [label.text for label in label_pieces(pieces, fonts)] == ["#5", "cat", "#6"]
    assert unshown(pieces, fonts) == ["猫", "狗"]


def test_the_space_mark_may_be_missing_in_a_font() -> None:
    without_mark = next(
        path
        for path in sorted(_BUNDLED.glob("*.ttf"))
        if ord("▁") not in characters(path) and {ord("_"), ord("a")} <= characters(path)
    )
    assert label_pieces([piece("▁a")], Fonts([without_mark])) == [
        Label(text="_a", font=without_mark)
    ]


def test_a_file_that_is_no_font_is_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    assert Fonts([broken, tmp_path / "missing.ttf", OWN]).find("cat") == OWN


def test_installed_fonts_begin_with_matplotlibs_own() -> None:
    fonts = installed_fonts()
    assert fonts.default.name == "DejaVuSans.ttf"
    assert fonts.find("cat") == fonts.default


def test_an_installed_font_for_chinese_is_found_without_its_name() -> None:
    font = installed_fonts().find("一只猫")
    if font is None:
        pytest.skip("no font for Chinese is installed")
    assert {ord(character) for character in "一只猫"} <= characters(font)
