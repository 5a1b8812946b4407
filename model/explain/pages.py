"""A folder of pictures of one sentence, and the page that shows them.

Owns the files' names and the page. Needs the extra `train`.
"""

import html
import logging
from pathlib import Path

from model.config import ModelConfig
from model.errors import DataError
from model.explain.heat_maps import AttentionKind, draw_layer, draw_overview
from model.explain.labels import Fonts, label_pieces, unshown
from model.explain.other_figures import draw_positions, draw_schedules, example_schedules
from model.explain.sentence import ExplainedSentence, Piece
from model.nn.transformer import Transformer
from model.system.paths import exists, is_folder
from model.train.config.schedule import ScheduleConfig

_LOGGER = logging.getLogger("dragoman.explain")

OVERVIEW = "overview.png"
POSITIONS = "positions.png"
SCHEDULES = "schedules.png"
PAGE = "index.html"

_WARMUP_UPDATES = 4000

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}img{max-width:100%}"
)


def write_pages(
    explained: ExplainedSentence,
    transformer: Transformer,
    folder: Path,
    *,
    fonts: Fonts,
    schedule: ScheduleConfig | None = None,
    num_updates: int | None = None,
) -> Path:
    """Draw everything; returns the page's path.

    The files are `overview.png`, `{encoder,decoder,cross}-layer-N.png`, `positions.png`,
    `schedules.png` and `index.html`; those of these names are replaced.

    Args:
        explained: The sentence.
        transformer: The network that was looked at.
        folder: Made if missing.
        fonts: For the labels.
        schedule: An experiment's own, drawn beside the examples of every kind.
        num_updates: Of that experiment, None for five times the warm-up.

    Raises:
        DataError: A file cannot be written.
    """
    _warn_of_unshown(explained, fonts)
    if not is_folder(folder) and (exists(folder) or folder.is_symlink()):
        raise DataError(f"{folder}: is no directory, and the pictures need one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = [OVERVIEW, *_draw_attention(explained, folder, fonts)]
        draw_positions(transformer, folder / POSITIONS)
        _draw_schedules(transformer.config, folder / SCHEDULES, schedule, num_updates)
        names += [POSITIONS, SCHEDULES]
        page = folder / PAGE
        page.write_text(_page(explained, names), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{error.filename or folder}: {error.strerror or error}") from error
    return page


def attention_kinds(explained: ExplainedSentence, fonts: Fonts) -> dict[str, AttentionKind]:
    """The three attentions with their labels, by the first part of their files' names.

    Both axes of the decoder's own attention are what it has read. A row of cross-attention is
    named by the piece that is written there: what the decoder looked at to write it.
    """
    source = label_pieces(explained.source_pieces, fonts)
    read = label_pieces(explained.read_pieces, fonts)
    written = label_pieces(explained.written_pieces, fonts)
    return {
        "encoder": AttentionKind(
            title="encoder self-attention",
            maps=explained.encoder,
            rows=source,
            columns=source,
            row_title="source piece that looks",
            column_title="source piece looked at",
        ),
        "decoder": AttentionKind(
            title="decoder self-attention",
            maps=explained.decoder,
            rows=read,
            columns=read,
            row_title="target piece that looks",
            column_title="target piece looked at; grey is masked",
            is_causal=True,
        ),
        "cross": AttentionKind(
            title="cross-attention",
            maps=explained.cross,
            rows=written,
            columns=source,
            row_title="target piece being written",
            column_title="source piece looked at",
        ),
    }


def _draw_attention(explained: ExplainedSentence, folder: Path, fonts: Fonts) -> list[str]:
    kinds = attention_kinds(explained, fonts)
    draw_overview([kind for kind in kinds.values() if len(kind.maps)], folder / OVERVIEW)
    names = []
    for prefix, kind in kinds.items():
        for layer in range(len(kind.maps)):
            names.append(f"{prefix}-layer-{layer + 1}.png")
            draw_layer(kind, layer, folder / names[-1])
    return names


def _draw_schedules(
    config: ModelConfig, path: Path, schedule: ScheduleConfig | None, num_updates: int | None
) -> None:
    warmup = _WARMUP_UPDATES if schedule is None else schedule.warmup_updates
    draw_schedules(
        example_schedules(warmup_updates=warmup, d_model=config.d_model, own=schedule),
        path,
        num_updates=num_updates or 5 * warmup,
        d_model=config.d_model,
    )


def _warn_of_unshown(explained: ExplainedSentence, fonts: Fonts) -> None:
    pieces = (*explained.source_pieces, *explained.read_pieces, *explained.written_pieces)
    characters = unshown(pieces, fonts)
    if characters:
        codes = ", ".join(f"U+{ord(character):04X}" for character in characters[:5])
        more = ", …" if len(characters) > 5 else ""
        fields = {
            "num_characters": len(characters),
            "characters": f"{codes}{more}",
            "reason": "no installed font shows them, so they are named by their numbers; for"
            " Chinese install a font such as Noto Sans CJK or WenQuanYi",
        }
        _LOGGER.warning("characters_not_shown", extra={"fields": fields})


def _page(explained: ExplainedSentence, names: list[str]) -> str:
    source, translation = html.escape(explained.source), html.escape(explained.translation)
    kind = "given target" if explained.is_given else "translation"
    figures = "\n".join(
        f'<h2>{Path(name).stem.replace("-", " ")}</h2>\n<img src="{name}" alt="{Path(name).stem}">'
        for name in names
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>One sentence</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{source}</h1>\n<p>{kind}: {translation}</p>\n"
        f"<p>source pieces: {_listed(explained.source_pieces)}</p>\n"
        f"<p>target pieces: {_listed(explained.written_pieces)}</p>\n"
        f"{figures}\n</body>\n</html>\n"
    )


def _listed(pieces: tuple[Piece, ...]) -> str:
    return " ".join(
        f"<code>{html.escape(piece.text)}</code> <small>#{piece.token_id}</small>"
        for piece in pieces
    )
