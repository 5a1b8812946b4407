"""Forms of a plural: what each is made of, by the rule of the catalogue, and what msgfmt says."""

import shutil
import subprocess

import pytest

from model.documents.formats import open_document
from model.documents.plain_text.gettext_plurals import PluralRule, plural_rule

MSGFMT = shutil.which("msgfmt")
RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
    " ? 1 : 2);"
)
POLISH = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
ARABIC = (
    "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3"
    " : n%100>=11 ? 4 : 5;"
)
FRENCH = "nplurals=2; plural=(n > 1);"
GERMAN = "nplurals=2; plural=n != 1;"
CHINESE = "nplurals=1; plural=0;"
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Content-Transfer-Encoding: 8bit\\n"\n'
)
ONE, SOME = "One file was deleted.", "%d files were deleted."
ONE_BY_NUMBER = "%d file was deleted."


def catalogue(rule: str, num_forms: int, single: str = ONE) -> str:
    """A message with a plural and so many forms, in a catalogue with a rule, which may be none."""
    half = len(rule) // 2
    # As msgcat writes a long line.
    said = f'"Plural-Forms: {rule[:half]}"\n"{rule[half:]}\\n"\n' if rule else ""
    forms = "".join(f'msgstr[{form}] ""\n' for form in range(num_forms))
    return f'{HEADER}{said}\n#, c-format\nmsgid "{single}"\nmsgid_plural "{SOME}"\n{forms}'


@pytest.mark.parametrize(
    ("rule", "single", "texts"),
    [
        (CHINESE, ONE, [SOME]),
        (CHINESE, ONE_BY_NUMBER, [SOME]),
        (GERMAN, ONE, [ONE, SOME]),
        (FRENCH, ONE, [SOME, SOME]),
        (FRENCH, ONE_BY_NUMBER, [ONE_BY_NUMBER, SOME]),
        (RUSSIAN, ONE, [SOME, SOME, SOME]),
        (RUSSIAN, ONE_BY_NUMBER, [ONE_BY_NUMBER, SOME, SOME]),
        (POLISH, ONE, [ONE, SOME, SOME]),
        (ARABIC, ONE, [SOME, ONE, SOME, SOME, SOME, SOME]),
        ("nplurals=2; plural=0;", ONE_BY_NUMBER, [SOME, SOME]),
    ],
)
def test_a_form_is_of_the_singular_where_1_alone_has_it_or_the_number_is_said(
    rule: str, single: str, texts: list[str]
) -> None:
    source = catalogue(rule, len(texts), single)
    document = open_document(source.encode(), "po")
    assert list(document.texts) == texts
    rebuilt = document.rebuild([f"<{text}>" for text in texts])
    for form, text in enumerate(texts):
        assert f'msgstr[{form}] "<{text}>"\n'.encode() in rebuilt
    if MSGFMT is not None:
        said = subprocess.run(
            [MSGFMT, "--check-format", "-o", "/dev/null", "-"],
            input=rebuilt,
            capture_output=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr.decode()


@pytest.mark.parametrize("rule", ["", "nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2;"])
@pytest.mark.parametrize(
    ("single", "texts"),
    [
        (ONE, [SOME]),
        (ONE, [ONE, SOME]),
        (ONE, [SOME, SOME, SOME]),
        (ONE_BY_NUMBER, [ONE_BY_NUMBER, SOME, SOME]),
    ],
)
def test_without_a_rule_the_number_of_forms_says_which_is_of_1(
    rule: str, single: str, texts: list[str]
) -> None:
    source = catalogue(rule, len(texts), single)
    assert list(open_document(source.encode(), "po").texts) == texts


def test_a_header_that_is_not_the_first_entry_has_the_rule_too() -> None:
    header, _, entry = catalogue(ARABIC, 6).partition("\n\n")
    assert open_document(f"{entry}\n{header}\n".encode(), "po").texts[:2] == (SOME, ONE)


@pytest.mark.parametrize(
    "rule", ["n/0", "n" * 2_000, "(" * 100 + "n" + ")" * 100, "n?1:" * 300 + "1", "n**n**n", "n n"]
)
def test_a_rule_that_cannot_be_asked_is_none(rule: str) -> None:
    assert plural_rule(f"Plural-Forms: nplurals=2; plural={rule};\n") == PluralRule()


def test_a_form_that_the_entry_does_not_have_is_the_first() -> None:
    rule = plural_rule("Plural-Forms: nplurals=9; plural=n==1 ? 7 : 0;\n")
    assert [rule.is_of_singular(form, 2, ONE, SOME) for form in range(2)] == [True, False]
    assert [rule.is_of_singular(form, 3, ONE, SOME) for form in range(3)] == [False] * 3


@pytest.mark.parametrize(("filled", "lacking"), [(0, SOME), (1, ONE)])
def test_a_form_without_a_translation_gets_one_beside_another(filled: int, lacking: str) -> None:
    source = catalogue(GERMAN, 2).replace(f'msgstr[{filled}] ""', f'msgstr[{filled}] "da"')
    document = open_document(source.encode(), "po")
    assert document.texts == (lacking,)
    rebuilt = document.rebuild(["neu"]).decode()
    assert rebuilt == source.replace(f'msgstr[{1 - filled}] ""', f'msgstr[{1 - filled}] "neu"')


def test_a_form_that_is_a_number_alone_is_written_beside_another() -> None:
    source = 'msgid "one"\nmsgid_plural "7"\nmsgstr[0] "eins"\nmsgstr[1] ""\n'
    document = open_document(source.encode(), "po")
    assert document.texts == ()
    assert document.rebuild([]).decode() == source.replace('""', '"7"')
