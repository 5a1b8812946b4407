"""Limits that LibreTranslate's contract tells of itself; the contract is tests/contract."""

from service.api.libretranslate.request import translate_operation
from service.settings import Settings


def test_as_many_alternatives_are_told_as_the_server_allows() -> None:
    operation = translate_operation(Settings(max_beam_size=4, beam_size=2))
    for body in operation["requestBody"]["content"].values():
        assert body["schema"]["properties"]["alternatives"]["maximum"] == 3
