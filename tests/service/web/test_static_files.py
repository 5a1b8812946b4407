"""The page's files against each other: what is loaded is there, and every string has its words."""

import json
import re
import tomllib
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import pytest

import service.web
from service.web.static_files import MEDIA_TYPES, load_static_files
from support.running_server import ROOT

FOLDER = Path(service.web.__file__).parent / "static"
FILES = {name: file.content.decode() for name, file in load_static_files().items()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
STRINGS = {
    language: json.loads(FILES[f"strings-{language}.json"]) for language in ("en", "de", "zh")
}


class _Page(HTMLParser):
    """Links, and elements with their strings: key, attribute (or "") and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.inline: list[str] = []
        self.ids: list[str] = []
        self.strings: list[tuple[str, str]] = []
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.links += [values[name] for name in ("src", "href") if name in values]
        self.inline += [name for name in values if name == "style" or name.startswith("on")]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in values) else []
        self.ids += [values["id"]] if "id" in values else []
        for name, attribute in (("label", "aria-label"), ("placeholder", "placeholder")):
            if f"data-t-{name}" in values:
                self.strings.append((values[f"data-t-{name}"], values[attribute]))
        self._open = values.get("data-t")

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.strings.append((self._open, data))
        self._open = None


PAGE = _Page(FILES["index.html"])


def test_every_file_is_known_and_goes_into_the_package() -> None:
    names = [path.name for path in FOLDER.iterdir()]
    assert sorted(names) == sorted(FILES)
    assert {Path(name).suffix for name in names} == set(MEDIA_TYPES)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["service"]
    for name in names:
        assert any(fnmatch(f"web/static/{name}", pattern) for pattern in patterns)


def test_whatever_is_loaded_is_here() -> None:
    loaded = {link.removeprefix("assets/") for link in PAGE.links if link.startswith("assets/")}
    for text in SCRIPTS.values():
        loaded |= set(re.findall(r'from "\./([^"]+)"', text))
    for name in ("page.css", "base.css", "docs.css"):
        loaded |= set(re.findall(r'url\("([^"]+)"\)', FILES[name]))
    assert loaded <= set(FILES)
    assert len(loaded) > 20
    assert {link for link in PAGE.links if not link.startswith("assets/")} == {
        "#source",
        "./",
        "docs",
    }


def test_nothing_comes_from_elsewhere_and_nothing_is_written_into_the_page() -> None:
    for name, text in FILES.items():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        assert len(text.splitlines()) <= 400, name
    assert PAGE.inline == []
    assert len(PAGE.ids) == len(set(PAGE.ids))
    for text in SCRIPTS.values():
        for markup in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert markup not in text


@pytest.mark.parametrize("language", ["de", "zh"])
def test_every_language_has_the_same_strings_with_the_same_values(language: str) -> None:
    def values(strings: dict[str, str]) -> dict[str, list[str]]:
        return {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in strings.items()}

    assert values(STRINGS[language]) == values(STRINGS["en"])
    assert all(text.strip() for text in STRINGS[language].values())


def test_the_page_says_in_its_markup_what_the_english_strings_say() -> None:
    assert len(PAGE.strings) > 55
    for key, text in PAGE.strings:
        assert STRINGS["en"][key] == text


def test_every_string_is_used_and_every_one_that_is_used_exists() -> None:
    code = "\n".join(SCRIPTS.values())
    literal = set(re.findall(r'\bt\(\s*"(\w+)"', code))
    assert literal <= set(STRINGS["en"])
    quoted = set(re.findall(r'"(\w+)"', code))
    made = ("error_", "failed_", "key_", "term_")
    shown = {key for key, _ in PAGE.strings}
    unused = {key for key in set(STRINGS["en"]) - quoted - shown if not key.startswith(made)}
    assert unused == set()


def test_every_element_that_scripts_look_for_is_on_the_page() -> None:
    wanted = set(re.findall(r'byId\("([\w-]+)"\)', SCRIPTS["main.js"]))
    assert len(wanted) > 40
    assert wanted <= set(PAGE.ids)
