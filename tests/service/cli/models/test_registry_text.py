"""What a person is shown of a model before it is downloaded."""

from model.exchange.registry.listing import Content, Listing, RemoteFile, Score
from service.cli.models.registry_text import described

FILE = RemoteFile(path="model.bin", url="https://a.example/model.bin", stored=Content(size=3 << 20))
BARE = Listing(name="hf:a/b", folder="b", version="1", registry="Hugging Face", files=(FILE,))


def rows(listing: Listing) -> dict[str, str]:
    lines = (line.partition(":") for line in described(listing).splitlines())
    return {name: text.strip() for name, _, text in lines}


def test_licence_languages_size_and_scores_are_told() -> None:
    listing = Listing(
        name="firefox:de-en",
        folder="firefox-de-en",
        version="1.0",
        registry="Firefox Translations",
        files=(FILE, FILE),
        licence="MPL-2.0",
        pairs=(("de", "en"),),
        scores=(
            Score(metric="BLEU", value=41.4, test_set="FLORES"),
            Score(metric="COMET", value=0.883, test_set="FLORES", pair="de-en"),
        ),
    )
    told = rows(listing)
    assert told["licence"] == "MPL-2.0"
    assert told["languages"] == "de → en"
    assert told["size"] == "6.0 MiB in 2 files"
    assert told["scores"] == "BLEU 41.4 (FLORES); COMET 0.883 (FLORES, de-en)"


def test_what_nobody_states_is_said_to_be_so() -> None:
    told = rows(BARE)
    assert told["licence"] == "not stated; look at its page"
    assert told["languages"] == "see its page"
    assert told["scores"] == "none published"


def test_words_of_strangers_stay_on_their_line() -> None:
    listing = Listing(
        name="hf:a/b",
        folder="b",
        version="1",
        registry="Hugging Face",
        files=(FILE,),
        description="one\nlicence: MIT\x1b[2J",
    )
    assert described(listing).count("\n") == described(BARE).count("\n")
    assert "\x1b" not in described(listing)
