from model.train.config.comparison import explicit_values
from model.train.config.data import CorpusConfig, DataConfig
from model.train.config.filters import FilterConfig

DATA = DataConfig(
    folder="en-zh",
    source_language="en",
    target_language="zh",
    train=(CorpusConfig(name="talk", licence="CC0-1.0", copies=2),),
    dev=("held-out",),
    filters=FilterConfig(drop_blank=True),
)


def test_explicit_values_are_the_keys_that_are_not_at_their_defaults() -> None:
    assert explicit_values(FilterConfig()) == []
    assert explicit_values(DATA, left_out={"licence", "dev"}) == [
        ("folder", "en-zh"),
        ("source_language", "en"),
        ("target_language", "zh"),
        ("train", ([("name", "talk"), ("copies", 2.0)],)),
        ("filters", [("drop_blank", True)]),
    ]
