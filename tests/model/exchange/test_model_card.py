from pathlib import Path

import pytest
import yaml

from model.exchange.model_card import card_licence, format_head

NC = "CC-BY-NC-4.0"


def written(folder: Path, page: str | bytes) -> Path:
    data = page.encode() if isinstance(page, str) else page
    (folder / "README.md").write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("page", "licence"),
    [
        ("---\nlicense: cc-by-nc-4.0\n---\n", "CC-BY-NC-4.0"),
        ("---\nlicense: 'apache-2.0'\n---\n", "Apache-2.0"),
        ("---\nlicense: odd-licence\n---\n", "odd-licence"),
        ("---\nlicense:\n- cc-by-nc-4.0\n---\n", "CC-BY-NC-4.0"),
        ("---\nlicense:\n  - mit\n  - lgpl-3.0\n---\n", "MIT, LGPL-3.0"),
        ("---\nlicense: [mit]\n---\n", "MIT"),
        ("---\r\nlanguage: en\r\nlicense: cc-by-nc-4.0\r\n---\r\n", "CC-BY-NC-4.0"),
        ("\ufeff---\nlicense: mit\n---\n", "MIT"),
        ("--- \nlicense: cc-by-nc-4.0 # not ours\n---\n", "CC-BY-NC-4.0"),
        ('---\n"license": mit\n---\n', "MIT"),
        ("---\nlicense: other\nlicense_name: research-only\n---\n", "research-only"),
        ("---\nlicense_name: research-only\nlicense: other\n---\n", "research-only"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlanguage: [en\ntags:\n- *x\nlicense: mit\n---\n", "MIT"),
        ("---\nmodel-index:\n- name: x\n  license: gpl-3.0\nlicense: mit\n---\n", "MIT"),
        ("---\nlanguage: en\n---\nlicense: mit\n", None),
        ("---\nlicense: mit\n", None),
        ("license: mit\n", None),
        ("# Model\n\n---\nlicense: mit\n---\n", None),
        ("---\nlicense: cc-by-nc-4.0\nlicense_name: NLLB: non-commercial\n---\n", NC),
        ("---\nlicense: cc-by-nc-4.0\nlicense_name: @nllb\n---\n", NC),
        ("---\nlicense: other\nlicense_name: NLLB: research\n---\n", "NLLB: research"),
        ("---\nlicense: other\nlicense_name: @nllb\n---\n", "@nllb"),
        ("---\nlicense: [\n  cc-by-nc-4.0\n]\n---\n", NC),
        ("---\nlicense: [\ncc-by-nc-4.0\n]\n---\n", NC),
        ("---\n  language: en\n  license: cc-by-nc-4.0\n---\n", NC),
        ("---\n  language: [en\n  license: cc-by-nc-4.0\n  tags: x\n---\n", NC),
        ("---\n{license: cc-by-nc-4.0}\n---\n", NC),
        ("\n \n---\nlicense: cc-by-nc-4.0\n---\n", NC),
        ("---\nx: &l cc-by-nc-4.0\nlicense: *l\n---\n", NC),
        ("---\nx: &l [cc-by-nc-4.0]\nlicense: *l\n---\n", NC),
        ("---\nlicense:\tcc-by-nc-4.0\n---\n", NC),
        ("---\nlicense: >\n  cc-by-nc-4.0\n---\n", NC),
        ("---\nlicense: mit\nlicense: cc-by-nc-4.0\n---\n", f"MIT, {NC}"),
        ("---\nlicense: [other, mit]\nlicense_name: foo-nc\n---\n", "foo-nc, MIT"),
        ("---\nlicense: other\nlicense_name: [a, b-nc]\n---\n", "a, b-nc"),
        ("---\ntext: " + "x " * 50_000 + "\nlicense: cc-by-nc-4.0\n---\n", NC),
        ("---\nlicense: 3.0\n---\n", "3.0"),
        ("---\nlicense: ''\n---\n", None),
        ("---\nlicense: ~\n---\n", None),
        ("---\nlicense:\n---\n", None),
        ("---\nlicense: {cc-by-nc-4.0: 1}\n---\n", "CC-BY-NC-4.0: 1"),
        ("---\nlicense: [mit\n---\n", "MIT"),
        ("---\nlicense: *nowhere\n---\n", "*nowhere"),
        ("---\nlicense: &a [*a, *a]\n---\n", "&a [*a, *a"),
        ("---\nlicense: " + "[" * 100_000 + "\n---\n", None),
        ("---\nlicense: other\nlicense_name: '  '\n---\n", "other"),
        ("---\nlicense: other\nlicense_name: '\u200b'\n---\n", "other"),
        ("---\nlicense: ' mit '\n---\n", "MIT"),
        ("---\nlicense: other\nlicense_name: |\n  a\n  b\n---\n", "a b"),
        ("---\nlicense: other\nlicense_name: a\u200b\u202eb\n---\n", "ab"),
        (f"---\nlicense: other\nlicense_name: {'x' * 1_500}\n---\n", "x" * 1_000),
        (f"---\nlicense: [{'x' * 990}, {'y' * 990}]\n---\n", f"{'x' * 990}, {'y' * 8}"),
        ("---\n" + "license: *x\n" * 50_000 + "---\n", "*x"),
        ("", None),
        (b"\xff\xfe\x00", None),
    ],
)
def test_the_licence_is_read_from_the_head_alone_however_it_is_spelt(
    tmp_path: Path, page: str | bytes, licence: str | None
) -> None:
    assert card_licence(written(tmp_path, page)) == licence


def test_a_folder_without_a_card_says_nothing(tmp_path: Path) -> None:
    assert card_licence(tmp_path) is None
    (tmp_path / "README.md").mkdir()
    assert card_licence(tmp_path) is None


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "CC-BY-NC-4.0",
        "LicenseRef-unknown",
        "CC-BY-4.0, MIT",
        'Ours: "nobody\'s" # research only 🦙',
        "other",
        "[x]",
        "no",
    ],
)
def test_a_head_comes_back_as_the_licence_it_was_made_of(tmp_path: Path, licence: str) -> None:
    head = format_head(licence)
    assert card_licence(written(tmp_path, head + "\n# Model\n\nlicense: mit\n")) == licence
    fields = yaml.safe_load(head.strip("-\n"))
    assert fields["license"] in {"mit", "cc-by-nc-4.0", "other"}  # words that the hub knows
