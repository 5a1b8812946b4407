"""Which notations of a number benchmarks take for the same."""

import pytest

from benchmarks.digits import has_number


@pytest.mark.parametrize(
    ("item", "source", "target", "expected"),
    [
        ("1,249.50", "€1,249.50", "1.249,50 €", True),
        ("1,249.50", "€1,249.50", "1249,50 €", True),
        ("1,249.50", "€1,249.50", "1.249,5 €", False),
        ("10:30", "at 10:30", "10点30分", True),
        ("10:30", "at 10:30", "um 10.30 Uhr", True),
        ("10:00", "at 10:00", "10:000", False),
        ("10:00", "at 10:00", "10:0", False),
        ("48,213", "48,213", "48213", True),
        ("1,000,000", "1,000,000", "1.000.000", True),
        ("1,000,000", "1,000,000", "1.000,000", False),
        ("1,000", "Pay $1,000", "$1.0000", False),
        ("$2,000.00", "$2,000.00", "2.00.0", False),
        ("1,000.00", "价格为1,000.00元", "1,00.000", False),
        ("100", "100", "1", False),
        ("05", "05", "5", True),
        ("5", "on 5 May", "am 05. Mai", True),
        ("03/14/2026", "on 03/14/2026", "14.3.2026", True),
        ("03/14/2026", "on 03/14/2026", "14.3.206", False),
        ("4.2.0", "4.2.0", "4.2.1", False),
        ("14", "14 days", "vierzehn Tage", False),
        ("3", "3 and 3", "3", False),
        ("3", "3 and 3.5", "3 und 3,5", True),
        ("3", "a 3:1 win", "ein 3:1", True),
        ("3", "a 3:1 win", "ein 2:1", False),
        ("21st", "the 21st", "das 21.", True),
        ("1'200", "1'200", "1,200", True),
    ],
)
def test_a_number_counts_in_the_notations_of_any_language(
    item: str, source: str, target: str, expected: bool
) -> None:
    assert has_number(item, source, target) is expected
