"""Words that the glossary replaced are not used again."""

from __future__ import annotations

import pytest
import synonyms
from sources import PYTHON, ROOT, text

pytestmark = pytest.mark.sources
PAGES = sorted({*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")} - {ROOT / "docs/reference/glossary.md"})
UNREAD = {"CHANGELOG.md", "docs/explanation/performance.md"}
"""Files that are not checked: old text, and a page generated from recorded figures."""
RUST = sorted((ROOT / "crates").glob("*/src/**/*.rs"))


def test_the_glossary_lists_them_with_their_replacements():
    everywhere, classes = synonyms.forbidden()
    assert everywhere["told"] == "reported, said, known"
    assert {"gives up", "owes", "owed", "foretells", "wish", "by lot"} <= set(everywhere)
    assert {"how", "into", "goal", "seldom"} <= set(classes)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("class Told: pass", "told"),
        ("class How: pass", "how"),
        ("def settings_owed(): pass", "owed"),
        ("def show(told): pass", "told"),
        ("ARMS_TOLD = 4", "told"),
        ('"""The server gives up."""', "gives up"),
        ('"""It gives\nup."""', "gives up"),
        ('option("--for", help="The time that a wish may take.")', "wish"),
        ('option("--for", help=f"{time} foretells it")', "foretells"),
        ('option_with_default("--for", help="The wish.")', "wish"),
    ],
)
def test_one_in_a_public_name_a_docstring_or_a_help_is_found(source: str, word: str):
    source = source.replace("option(", "click.option(")
    assert [found for _, found in synonyms.of_source(source)] == [word]


def test_private_names_local_names_and_parts_of_other_words_are_free():
    source = (
        "def _told(): pass\ndef show():\n    told = 1\n    how = told\ndef show_table(how): pass\nTABLE_GOALS = 1\n"
    )
    assert list(synonyms.of_source(source)) == []


def test_none_is_in_the_package():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}" for path in PYTHON for line, word in synonyms.of_source(text(path))
    ]
    assert found == [], "docs/reference/glossary.md names the word to use"


def test_none_is_in_the_crates():
    assert list(synonyms.of_rust("/// It is told.\npub fn told() {}\nlet told = 1; // told")) == [
        (1, "told"),
        (2, "told"),
    ]
    found = {str(path.relative_to(ROOT)): words for path in RUST if (words := list(synonyms.of_rust(path.read_text())))}
    assert found == {}


def test_none_is_in_the_documentation():
    found = {str(page.relative_to(ROOT)): words for page in PAGES if (words := synonyms.of_page(page.read_text()))}
    assert {name: words for name, words in found.items() if name not in UNREAD} == {}
