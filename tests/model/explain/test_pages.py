import logging
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from model.config import PositionKind
from model.errors import DataError
from model.explain.heat_maps import draw_map
from model.explain.labels import Fonts, installed_fonts
from model.explain.other_figures import draw_positions, example_schedules
from model.explain.pages import attention_kinds, write_pages
from model.explain.sentence import ExplainedSentence, Piece
from model.nn.transformer import Transformer
from model.train.config.schedule import ScheduleConfig, ScheduleKind, learning_rate
from support.logged import events_of
from support.tiny_checkpoint import tiny_network, tiny_transformer

OWN = Fonts([installed_fonts().default])


def explained(*, num_layers: int = 1, num_heads: int = 1) -> ExplainedSentence:
    """Three source pieces, two target pieces."""
    draw = np.random.default_rng(3)

    def maps(num_rows: int, num_columns: int) -> tuple[np.ndarray, ...]:
        found = draw.random((num_layers, num_heads, num_rows, num_columns)).astype(np.float32)
        return tuple(found / found.sum(axis=-1, keepdims=True))

    def pieces(*texts: str) -> tuple[Piece, ...]:
        return tuple(Piece(token_id=index, text=text) for index, text in enumerate(texts))

    return ExplainedSentence(
        source="a <cat>",
        translation="ein & Kater",
        is_given=False,
        source_pieces=pieces("▁a", "▁<cat>", "</s>"),
        read_pieces=pieces("<start>", "▁ein"),
        written_pieces=pieces("▁ein", "</s>"),
        encoder=maps(3, 3),
        decoder=maps(2, 2),
        cross=maps(2, 3),
    )


def transformer(position: PositionKind = "sinusoidal-marian") -> Transformer:
    return tiny_transformer(replace(tiny_network(), position=position))


def test_every_layer_has_a_picture_of_a_name_that_can_be_foretold(tmp_path: Path) -> None:
    sentence = explained(num_layers=2, num_heads=5)
    page = write_pages(sentence, transformer(), tmp_path / "new" / "folder", fonts=OWN)
    names = {path.name for path in page.parent.iterdir()}
    layers = {f"{k}-layer-{n}.png" for k in ("encoder", "decoder", "cross") for n in (1, 2)}
    assert names == layers | {"overview.png", "positions.png", "schedules.png", "index.html"}
    shown = page.read_text(encoding="utf-8")
    for name in sorted(names - {"index.html"}):
        assert f'src="{name}"' in shown
        with Image.open(page.parent / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 0
    assert "<h1>a &lt;cat&gt;</h1>" in shown
    assert "ein &amp; Kater" in shown


def test_rows_of_cross_attention_are_what_is_written_and_of_the_decoder_what_was_read() -> None:
    kinds = attention_kinds(explained(), OWN)
    assert [label.text for label in kinds["cross"].rows] == ["▁ein", "</s>"]
    assert [label.text for label in kinds["cross"].columns] == ["▁a", "▁<cat>", "</s>"]
    assert [label.text for label in kinds["decoder"].rows] == ["<start>", "▁ein"]
    assert kinds["decoder"].rows == kinds["decoder"].columns


def test_a_map_shows_the_weights_on_one_scale_and_hides_what_is_masked() -> None:
    kinds = attention_kinds(explained(), OWN)
    for name, kind in kinds.items():
        axes = Figure().subplots()
        image = draw_map(axes, kind.maps[0][0], kind)
        shown = image.get_array()
        assert isinstance(shown, np.ma.MaskedArray)
        hidden = np.triu(np.ones(shown.shape, dtype=bool), k=1) & (name == "decoder")
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), hidden)
        np.testing.assert_array_equal(shown[~hidden], kind.maps[0][0][~hidden])
        assert (image.norm.vmin, image.norm.vmax) == (0.0, 1.0)
        assert [tick.get_text() for tick in axes.get_yticklabels()] == [
            label.text for label in kind.rows
        ]


@pytest.mark.parametrize(
    "position", ["sinusoidal-interleaved", "sinusoidal-m2m100", "learned", "rope", "alibi"]
)
def test_every_kind_of_positions_can_be_drawn(position: PositionKind, tmp_path: Path) -> None:
    draw_positions(transformer(position), tmp_path / "positions.png")
    with Image.open(tmp_path / "positions.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 0


def test_characters_without_a_font_are_said_once_and_drawn_as_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chinese = replace(
        explained(),
        written_pieces=(Piece(token_id=7, text="▁猫"), Piece(token_id=1, text="</s>")),
    )
    with caplog.at_level(logging.WARNING):
        write_pages(chinese, transformer(), tmp_path, fonts=OWN)  # a box would be a warning: error
    [(event, fields)] = events_of(caplog)
    assert event == "characters_not_shown"
    assert (fields["num_characters"], fields["characters"]) == (1, "U+732B")
    kinds = attention_kinds(chinese, OWN)
    assert [label.text for label in kinds["cross"].rows] == ["#7", "</s>"]


def test_chinese_is_drawn_by_an_installed_font(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fonts = installed_fonts()
    if fonts.find("猫狗") is None:
        pytest.skip("no font for Chinese is installed")
    chinese = replace(
        explained(),
        read_pieces=(Piece(token_id=0, text="<start>"), Piece(token_id=7, text="▁猫狗")),
        written_pieces=(Piece(token_id=7, text="▁猫狗"), Piece(token_id=1, text="</s>")),
    )
    write_pages(chinese, transformer(), tmp_path, fonts=fonts)
    assert not caplog.messages


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="file: is no directory, and the pictures need one"):
        write_pages(explained(), transformer(), tmp_path / "file", fonts=OWN)


def test_examples_of_every_schedule_share_one_peak() -> None:
    for own in (None, ScheduleConfig(kind="constant", peak=3e-4, warmup_updates=50)):
        found = example_schedules(warmup_updates=50, d_model=64, own=own)
        assert {config.kind for config in found.values()} == set(get_args(ScheduleKind))
        rates = {learning_rate(config, update=50, d_model=64) for config in found.values()}
        assert max(rates) == pytest.approx(min(rates))
        assert (next(iter(found)) == "this experiment") == (own is not None)
