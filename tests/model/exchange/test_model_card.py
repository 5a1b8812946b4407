from pathlib import Path

import pytest
import yaml

from model.exchange.model_card import card_licence, format_head


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
        ("---\nlicense: 3.0\n---\n", None),
        ("---\nlicense: ''\n---\n", None),
        ("---\nlicense: {mit: 1}\n---\n", None),
        ("---\nlicense: [mit\n---\n", None),
        ("---\nlicense: &a [*a, *a]\n---\n", None),
        ("---\nlicense: " + "[" * 100_000 + "\n---\n", None),
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
