import random
from collections.abc import Callable

import pytest

from model.text.drafts.amounts import differs_in_numbers
from model.text.marks.units import differs_in_units, find_measures

SIGNS = [
    (",", "."),
    (".", ","),
    ("'", "."),
    ("\u00a0", ","),
    ("\u202f", ","),
    (" ", ","),
    ("", "."),
]
"""Signs between thousands and before decimals, as languages have them."""


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("1,000.50 euros", "1.000,50 Euro"),
        ("€1,299.00", "1.299,00 €"),
        ("1,000,000 people", "1.000.000 Menschen"),
        ("1,000,000 people", "1000000人"),
        ("1,00,000 rupees", "100.000 Rupien"),
        ("12 500 people", "12,500 Menschen"),
        ("15,000 cats and 20, 300", "15，000只猫，20，300"),
        ("12\u00a0500 people", "12 500 Menschen"),
        ("at 10:30", "上午10点30分"),
        ("at 10:00", "um 10.00 Uhr"),
        ("at 09:05", "9点5分"),
        ("at 00:30", "um 0.30 Uhr"),
        ("at 3:30 pm", "um 15:30 Uhr"),
        ("at 3 p.m.", "um 15 Uhr"),
        ("at 3 pm", "um 15.00 Uhr"),
        ("at 3 pm", "um 3 Uhr nachmittags"),
        ("from 3-5 pm", "von 15 bis 17 Uhr"),
        ("from 3 to 5 pm", "von 15 bis 17 Uhr"),
        ("between 3 and 5 pm", "zwischen 15:00 und 17:00 Uhr"),
        ("open 9:00 am-5:00 pm", "offen 9-17 Uhr"),
        ("open 10:00-12:00", "offen 10 bis 12 Uhr"),
        ("营业时间9:00-17:00", "open 9 am-5 pm"),
        ("at 12:00 am", "um 00:00"),
        ("at 12 am", "um 24 Uhr"),
        ("at 3 pm", "à 15h00"),
        ("at 3:00 pm", "15点00分"),
        ("下午2点半到4点", "from 2:30 to 4 pm"),
        ("下午3点20个人", "20 people at 15:00"),
        ("下午 3 点半", "3:30 pm"),
        ("at 15:00", "um 15 Uhr"),
        ("下午3点半", "at 3:30 pm"),
        ("下午三点半", "at 3:30 pm"),
        ("3点半", "at 3:30"),
        ("晚上8点", "20:00"),
        ("open 10:30-12:45", "offen 10.30-12.45 Uhr"),
        ("on 05 May", "am 5. Mai"),
        ("on 2026-03-14", "am 14.03.2026"),
        ("on 3/14/2026", "2026年3月14日"),
        ("１２ files and １，０００", "12 Dateien und 1, 000"),
        ("٣ files", "3 Dateien"),
        ("12 of 34", "34 von 12"),
        ("pages 12-15", "第12至15页"),
        ("half: .5", "halb: 0,5"),
        ("agent 007", "Agent 007"),
        ("on 5 100 people", "5 and 100"),
        ("0.5 and 0.50", "0,50 und 0,5"),
        ("the U.S. in 1990.", "1990 in den USA."),
        ("version 10.15.7", "Version 10.15.7"),
        ("order A-99812-XZ", "Bestellung A-99812-XZ"),
        ("no number", "keine Zahl"),
        ("Due on 3/14.", "Fällig am 14.3."),
        ("on 03/14", "am 14.03."),
        ("on 12/24", "am 24.12."),
        ("am 24.12.", "在12月24日"),
        ("um 14.30 Uhr", "14点30分"),
        ("um 10.30 Uhr", "10点30分"),
        ("steps 1,2", "Schritte 1 und 2"),
        ("pages 10,20", "第10、20页"),
        ("1.5 kg on 12/24", "1,5 kg am 24.12."),
    ],
)
def test_the_same_amount_may_be_written_in_another_way(source: str, target: str) -> None:
    assert not differs_in_numbers(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("1,000,000", "1,000.00"),
        ("1,000,000", "1.000,000"),
        ("1,000,000", "1,000"),
        ("2,000", "2.00"),
        ("2,000.00", "2.00.0"),
        ("3.000", "3.00"),
        ("10:00", "10:0"),
        ("10:00", "10:000"),
        ("100.00", "100.0"),
        ("at 3:30 pm", "um 15:40 Uhr"),
        ("at 3:30 am", "um 15:30 Uhr"),
        ("at 3 pm", "um 14 Uhr"),
        ("from 3 to 5 pm", "von 3 bis 17:00"),
        ("下午3点半", "at 3:00 pm"),
        ("100", "1"),
        ("0", "00"),
        ("1.05", "1.5"),
        ("0.5", "5"),
        ("1.299,00 €", "1.299,000 €"),
        ("Pay $1,000 now", "$1.0000"),
        ("价格为1,000.00元", "1,00.000"),
        ("<b>1,000.00</b>", "<b>1.000.0</b>"),
        ("12.50", "50.12"),
        ("1,234,567", "1.234.765"),
        ("5 and 5", "5"),
        ("3 cats", "drei Katzen"),
        ("three cats", "5 Katzen"),
        ("12 500", "12 50"),
        ("2,000 dollars", "2，000000美元"),
        ("on 3/14", "am 15.3."),
        ("on 3/14 and 1.05", "am 14.3. und 1,5"),
        ("100.5", "100 and 5"),
    ],
)
def test_another_amount_differs_even_if_only_its_zeros_do(source: str, target: str) -> None:
    assert differs_in_numbers(source, target)
    assert differs_in_numbers(target, source)


def _grouped(whole: str, sign: str) -> str:
    first = len(whole) % 3 or 3
    return sign.join([whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))])


def _written(whole: str, decimals: str, signs: tuple[str, str]) -> str:
    return _grouped(whole, signs[0]) + (signs[1] + decimals if decimals else "")


def _amount(chance: random.Random) -> tuple[str, str]:
    """Digits before and behind a decimal sign, many of them zeros, and no three behind it."""
    digit: Callable[[], str] = lambda: chance.choice("000123456789")  # noqa: E731
    whole = chance.choice("123456789") + "".join(digit() for _ in range(chance.randrange(8)))
    return whole, "".join(digit() for _ in range(chance.choice((0, 0, 1, 2, 4))))


def test_amounts_are_equal_if_and_only_if_their_digits_are_in_any_two_notations() -> None:
    chance = random.Random(3)
    for _ in range(5_000):
        own = _amount(chance)
        other = own if chance.random() < 0.5 else _amount(chance)
        if chance.random() < 0.3:  # a zero too many, or one too few
            other = (own[0] + "0", own[1]) if chance.random() < 0.5 else (own[0], own[1][:-1])
        one, two = (
            f"It is {_written(*amount, signs)} now"
            for amount, signs in zip((own, other), chance.choices(SIGNS, k=2), strict=True)
        )
        is_alike = len(other[1]) != 3 and len(own[1]) != 3
        if is_alike:
            assert differs_in_numbers(one, two) is (own != other), (one, two)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5万人来了。", "15,000 people came."),
        ("3 billion", "3 Milliarden"),
        ("30亿", "3 billion"),
        ("1.22万亿元", "1.22 trillion yuan"),
        ("300多万人", "more than 3 million people"),
        ("10-20万人", "100,000 to 200,000 people"),
        ("1亿2000万人", "120 million people"),
        ("3万5000元", "35,000 yuan"),
        ("1亿2345万6789", "123,456,789"),
        ("10 to 20 million", "10-20 Millionen"),
        # Words of other languages are not known.
        ("3 million", "3 millones"),
        ("3 billion", "3 mil millones"),
        ("3 million", "3 миллиона"),
        # Others are of another word, or of none beside the number.
        ("1 trillion euros", "1 Billion Euro"),
        ("3 millionaires", "3名百万富翁"),
        ("In 2015 millions came", "2015年有数百万人"),
        ("5千克", "5 kg"),
    ],
)
def test_a_number_is_compared_with_its_magnitude(one: str, other: str) -> None:
    assert not differs_in_numbers(one, other)
    assert not differs_in_numbers(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("他有12万元。", "He has 12 million yen."),
        ("1亿2000万人", "1 million 2,000 people"),
        ("3万 5000", "35,000"),
        ("3万50000", "80,000"),
        ("城市有300万人口。", "300 million people"),
        ("有3亿人。", "3 hills"),
        ("3 billion users", "3 个万能用户"),
        ("3 billion", "3 Billionen"),
        ("5 Mio. Euro", "5 billion euros"),
    ],
)
def test_another_magnitude_is_another_amount(one: str, other: str) -> None:
    assert differs_in_numbers(one, other)
    assert differs_in_numbers(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is -5 °C.", "Es sind minus 5 °C."),
        ("It is -5 °C.", "Es sind \u22125 °C."),
        ("-5 °C", "零下5度"),
        ("-5℃至-20℃", "-5 °C to -20 °C"),
        ("pages 5-7", "Seiten 5 -7"),
        ("印度-1986年", "India, 1986"),
    ],
)
def test_a_sign_may_be_a_word_and_a_hyphen_is_none(one: str, other: str) -> None:
    assert not differs_in_numbers(one, other)
    assert not differs_in_numbers(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is -5 °C.", "Es sind 5 °C."),
        ("Call 0049-30-1234567", "Rufen Sie 049-30-1234567 an"),
        ("ticket 00123", "Karte 0123"),
        ("agent 007", "Agent 07"),
    ],
)
def test_signs_and_zeros_of_long_numbers_count(one: str, other: str) -> None:
    assert differs_in_numbers(one, other)
    assert differs_in_numbers(other, one)


@pytest.mark.parametrize(
    ("source", "target", "is_missing"),
    [
        ("the A380 plane", "das A380-Flugzeug", False),
        ("A380 and A380", "A380-Flugzeug und A380", False),
        ("A380 and A380", "A380", True),
        ("order XK7Q2M", "Bestellung XK7Q2", True),
    ],
)
def test_a_code_is_as_often_in_both(source: str, target: str, *, is_missing: bool) -> None:
    assert differs_in_numbers(source, target) is is_missing


@pytest.mark.timeout(30)
def test_many_codes_are_compared_at_once() -> None:
    # A search of the whole text for each of them would take minutes.
    codes = ",".join(f"A{number}" for number in range(10, 20_000))
    assert not differs_in_numbers(codes, codes)
    assert differs_in_numbers(codes, codes.replace("A", "B"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part",
    [
        "1",
        "123 ",
        "123，",
        "1,",
        "1.",
        "1:",
        "1-",
        ".5",
        "1 m",
        "5 % ",
        "$5",
        "1a2b-",
        "A1-",
        "5 万",
    ],
)
def test_long_texts_of_digits_are_read_once(part: str) -> None:
    # Work that grows with the square of the text would take many times as long as the test may.
    text = part * (100_000 // len(part))
    assert not differs_in_numbers(text, text)
    assert not differs_in_numbers(text + "-", text + "-")
    assert not differs_in_units(text, text)
    assert find_measures(text)[-1].end <= len(text)
