import pytest

from model.text.marks.units import differs_in_units, find_measures


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("Bake at 180 °C for 20 minutes.", ["180 °C", "20"]),
        ("Take 500 mg, then 250 ml.", ["500 mg", "250 ml"]),
        ("A 12 V battery with 60 Ah", ["12 V", "60 Ah"]),
        ("It costs £12.99 or 15,50 € or US$ 3", ["£12.99", "15,50 €", "US$ 3"]),
        ("at 125km/h with 8\u00a0GB", ["125km/h", "8\u00a0GB"]),
        ("价格为100美元，速度60 km/h。", ["100", "60 km/h"]),
        ("5 in a row, 10 min, 3 s, £380m and 2020 möglich", ["5", "10", "3", "£380", "2020"]),
        ("10 a.m. and 10 A.m.", ["10", "10"]),
        ("5% and 50%ig, 3 kgs", ["5%", "50", "3"]),
        ("no number in kg", []),
        ("10 $ 20 $ 30", ["10 $", "20 $", "30"]),
        ("5 € 10 are", ["5 €", "10"]),
        ("10 m2 $ 5 and 4 km2", ["10 m2", "$ 5", "4 km2"]),
        ("It is 5° C or 41\u00a0°\u00a0F.", ["5° C", "41\u00a0°\u00a0F"]),
    ],
)
def test_a_measure_is_a_number_with_its_unit(text: str, measures: list[str]) -> None:
    assert [text[one.start : one.end] for one in find_measures(text)] == measures


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("at 180 °C", "bei 180 °Uhr"),
        ("500 mg", "500 Mäuse"),
        ("a 12 V battery with 60 Ah", "12电池，有60美元"),
        ("250 ml of milk", "250 Milch"),
        ("It costs £12.99", "Es £kosten 12.99"),
        ("40 % and 30 %", "40 % und 30 €"),
        ("8 GB", "8 MB"),
        ("3 pieces", "3 kg"),
        ("5 g of salt", "5 Salz"),
        ("5 g of salt", "5 V Salz"),
        ("50 km/h", "50 km"),
        ("5° C", "5° F"),
        ("5 kg of α", "5 mg α"),
    ],
)
def test_a_unit_that_is_lost_or_another_one_differs(source: str, target: str) -> None:
    assert differs_in_units(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("at 180 °C", "bei 180°C"),
        ("at 180 °C", "在180摄氏度"),
        ("5 %", "5 Prozent"),
        ("5 percent", "5%"),
        ("$5 and 6 USD", "5 Dollar und 6 $"),
        ("$2.5bn", "2,5 Mrd. $"),
        ("$700 million", "700 Millionen $"),
        ("80 km/h", "每小时80公里"),
        ("12 kg", "12公斤"),
        ("12公斤", "12 kg"),
        ("at 10:30", "um 10:30 Uhr"),
        ("10 a.m.", "10 A.m."),
        ("in 2020", "2020 möglich"),
        ("2% milk", "2 %-ige Milch"),
        ("no unit", "keine Einheit"),
        ("5 € 10 are", "10 sind 5 €"),
        ("Add 5g of salt.", "5 g Salz"),
        ("220V socket", "220 V Steckdose"),
        ("10m long", "10 m lang"),
        ("5 m long", "长5m"),
        ("A 5-V supply", "5V-Netzteil"),
        ("It is 5° C.", "Es sind 5 °C."),
        ("It is 41° F.", "41°\u00a0F"),
        ("50 km per hour", "50 km/h"),
        ("3 m per second", "3 m/s"),
        ("8 GB and 500 MB", "8 Go et 500 Mo"),
        ("2 TB, 64 KB", "2 To, 64 Ko"),
        ("£5", "5 pond"),
        ("5%", "5 prosenttia"),
        ("5% off", "%5 indirim"),
    ],
)
def test_a_unit_may_be_a_word_or_stand_on_the_other_side(source: str, target: str) -> None:
    assert not differs_in_units(source, target)
    assert not differs_in_units(target, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("5 kg", "5 кг"),
        ("5% discount", "5パーセント割引"),
        ("1 kg", "1킬로그램"),
        ("100 V", "100ボルト"),
        ("100 V", "100 βολτ"),
        ("5 kg", "5 كجم"),
        ("5 kg", "५ किलो"),
    ],
)
def test_nothing_is_said_of_units_in_other_scripts(source: str, target: str) -> None:
    assert not differs_in_units(source, target)
    assert not differs_in_units(target, source)
