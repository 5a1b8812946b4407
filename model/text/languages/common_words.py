"""Common words of languages in Latin letters: what a text of few words is known by.

Owns the words, and how much likelier a text's words make a language. Statistics of letters
(`model.text.languages.detection`) are right about sentences and unsure of "Hallo" or "Ich bin
Student".
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

MAX_WORDS = 6
"""Of a text that is judged by its words; longer ones are told by their letters."""

_LIKELIER = 10.0
"""How many times one common word makes its language likelier."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "cs": "ahoj ano ne děkuji díky prosím dobrý den ráno večer noc jak se máš co kde kdy"
            " proč kdo já ty my vy je jsem jsi jsou není to ten a v na s z dnes zítra",
            "da": "hej ja nej tak goddag godmorgen farvel undskyld hvad hvor hvornår hvem hvorfor"
            " jeg du vi er har ikke det den en et og i på med af til i dag morgen",
            "de": "hallo guten gute tag morgen abend nacht danke dankeschön bitte ja nein tschüss"
            " ich du er sie es wir ihr bin bist ist sind seid war haben habe hat nicht kein keine"
            " und oder aber der die das den dem ein eine einen was wer wo wann wie warum gut sehr"
            " heute mir mich dir dich mein dein auf mit für von zu auch noch schon alles"
            " entschuldigung willkommen",
            "en": "hello hi hey the a an and or but is are am was were be have has do does did not"
            " no yes please thanks thank you i he she it we they me my your what who where when why"
            " how this that with for from to of in on good morning evening night bye goodbye sorry"
            " welcome sure today tomorrow can will would don't i'm it's",
            "es": "hola buenos buenas días tardes noches gracias por favor sí no adiós el la los"
            " las un una y o es son está estoy soy eres tengo qué quién dónde cuándo cómo yo tú él"
            " ella nosotros mi tu muy bien hoy mañana perdón de con para",
            "fi": "hei moi terve kiitos kyllä ei hyvää huomenta päivää iltaa yötä anteeksi ole hyvä"
            " minä sinä hän me te on olen olet ovat mitä missä milloin kuka miksi ja tai se tämä"
            " tänään huomenna",
            "fr": "bonjour bonsoir salut merci oui non au revoir le la les un une des et ou est"
            " sont suis es je tu il elle nous vous ils ne pas que qui quoi où quand comment"
            " pourquoi très bien aujourd'hui demain pardon s'il plaît de du avec pour dans c'est"
            " j'ai bienvenue",
            "hu": "szia helló köszönöm igen nem jó napot reggelt estét éjszakát kérem viszlát én te"
            " ő mi van vagyok vagy mit hol mikor ki miért hogyan és a az egy ez ma holnap",
            "id": "halo selamat pagi siang sore malam terima kasih ya tidak tolong maaf saya kamu"
            " anda dia kami kita ini itu apa siapa di mana kapan bagaimana dan atau yang dengan"
            " untuk dari adalah hari besok",
            "it": "ciao buongiorno buonasera buonanotte grazie prego sì no arrivederci il lo la gli"
            " un una e o è sono sei siamo ho hai che chi dove quando come perché io tu lui lei noi"
            " mio tuo molto bene oggi domani scusa per favore di con non",
            "nl": "hallo hoi goedemorgen goedemiddag goedenavond dank bedankt alstublieft ja nee"
            " dag ik jij je hij zij wij we ben bent is zijn niet geen en of maar de het een wat wie"
            " waar wanneer waarom hoe goed zeer vandaag morgen mijn jouw met voor van naar ook",
            "no": "hei ja nei takk god morgen dag kveld natt unnskyld hva hvor når hvem hvorfor jeg"
            " du vi er har ikke det den en et og i på med av til i dag",
            "pl": "cześć dzień dobry wieczór dziękuję dzięki proszę tak nie przepraszam ja ty on"
            " ona my wy jest jestem jesteś są co kto gdzie kiedy jak dlaczego i lub to ten w na"
            " z do dziś dzisiaj jutro",
            "pt": "olá oi bom boa dia tarde noite obrigado obrigada por favor sim não tchau adeus o"
            " a os as um uma e ou é são estou está sou tenho que quem onde quando como eu tu você"
            " ele ela nós meu seu muito bem hoje amanhã desculpe de com para",
            "ro": "salut bună ziua dimineața seara noapte mulțumesc mersi da nu vă rog eu tu el ea"
            " noi este sunt ești ce cine unde când cum și sau un o la cu pentru azi mâine",
            "sv": "hej ja nej tack god morgon dag kväll natt förlåt ursäkta hejdå vad var när vem"
            " varför hur jag du vi är har inte det den en ett och i på med av till idag imorgon",
            "tr": "merhaba selam günaydın iyi akşamlar geceler teşekkürler teşekkür ederim evet"
            " hayır lütfen ben sen o biz siz bu şu ne kim nerede zaman neden nasıl ve veya bir"
            " değil var yok bugün yarın",
            "vi": "xin chào cảm ơn vâng không tạm biệt tôi bạn anh chị em là có và hoặc này gì ai"
            " đâu khi nào hôm nay ngày mai làm ơn",
        }.items()
    }
)


def is_known(language: str) -> bool:
    """Whether common words of a language are there."""
    return language in _WORDS


def likelihood(text: str, language: str) -> float:
    """How many times likelier the words of a short text make a language; 1.0 if they say nothing.

    Args:
        text: Any; one of more than `MAX_WORDS` words says nothing.
        language: Without script or region.
    """
    words = _WORD.findall(text.lower().replace("’", "'"))
    if len(words) > MAX_WORDS or language not in _WORDS:
        return 1.0
    found: float = _LIKELIER ** sum(word in _WORDS[language] for word in words)
    return found
