"""A folder of parallel text, and the experiments that read it."""

from dataclasses import replace
from pathlib import Path

from model.train.config.data import CorpusConfig, DataConfig, DirectionConfig
from model.train.config.experiment import Experiment
from model.train.config.filters import FilterConfig
from model.train.config.run import RunConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.reading import RunText, read_text
from support.tiny_checkpoint import generated_pairs

PAIRS = list(generated_pairs(80))
TALK = CorpusConfig(name="talk", licence="CC0-1.0")
DATA = DataConfig(
    folder="en-zh",
    source_language="en",
    target_language="zh",
    target_tag="zh-Hans",
    train=(TALK,),
    dev=("held-out",),
)
EN_ZH = DATA.directions[0]
ZH_EN = DirectionConfig(
    folder="en-zh",
    source_language="zh",
    target_language="en",
    source_tag="zh-Hans",
    train=(TALK,),
    dev=("held-out",),
)
EXPERIMENT = Experiment(
    name="tiny",
    licence="CC0-1.0",
    data=DATA,
    vocabulary=VocabularyConfig(size=450),
    run=RunConfig(max_updates=1),
)
BOTH = replace(EXPERIMENT, data=DataConfig(pairs=(EN_ZH, ZH_EN)))


def write(folder: Path, corpus: str, pairs: list[tuple[str, str]], split: str = "train") -> None:
    (folder / "en-zh" / split).mkdir(parents=True, exist_ok=True)
    for language, side in (("en", 0), ("zh", 1)):
        path = folder / "en-zh" / split / f"{corpus}.{language}"
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


def read(
    folder: Path,
    experiment: Experiment = EXPERIMENT,
    *,
    is_vocabulary_there: bool = False,
    is_resumed: bool = False,
    cache: Path | None = None,
    places: KeyPlaces | None = None,
) -> RunText:
    return read_text(
        experiment,
        folder,
        folder / "run",
        is_vocabulary_there=is_vocabulary_there,
        is_resumed=is_resumed,
        cache=cache,
        places=places,
    )


def filtered(**values: float) -> Experiment:
    return replace(EXPERIMENT, data=replace(DATA, filters=FilterConfig(**values)))  # type: ignore[arg-type]


def written_folder(folder: Path) -> Path:
    """Seventy pairs to train on, ten held out, and the directory of a run."""
    write(folder, "talk", PAIRS[:70])
    write(folder, "held-out", PAIRS[70:], "dev")
    (folder / "run").mkdir()
    return folder
