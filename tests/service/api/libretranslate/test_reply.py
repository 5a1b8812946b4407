import json

from model.text.languages.tags import LanguagePair
from service.api.libretranslate.reply import LanguageList
from service.models.routes.routing import Offer, RoutingTable

THERE = Offer(name="there", pairs=[LanguagePair(source="de", target="en")])
ON = Offer(name="on", pairs=[LanguagePair(source="en", target="fr")])


def test_languages_have_the_targets_that_a_pivot_reaches_last() -> None:
    reply = LanguageList().of(RoutingTable([THERE, ON], pivot="en"))
    assert json.loads(bytes(reply.body)) == [
        {"code": "de", "name": "German", "targets": ["en", "fr"]},
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]


def test_the_list_is_made_once_for_what_is_loaded() -> None:
    languages, table = LanguageList(), RoutingTable([THERE])
    first = languages.of(table)
    assert languages.of(table) is first
    assert len(json.loads(bytes(languages.of(RoutingTable([THERE, ON])).body))) == 3
