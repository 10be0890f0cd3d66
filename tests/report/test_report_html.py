"""The page: one safe file in the right order, whatever the model contains."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import rendered
import report_models

from dbdyno.base.errors import ReportError
from dbdyno.report.html import code_spans, embedded_json, render_html, write_html


class Reader(HTMLParser):
    """Tags and text of a page as a browser's parser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, str] = {}
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        self._inside = f"{tag}#{given.get('id') or ''}" if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside:
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        else:
            self.words.append(data)

    def all(self, name: str, key: str) -> list[str]:
        return [given[key] or "" for tag, given in self.tags if tag == name and key in given]


@cache
def read(page: str) -> Reader:
    """Return a parsed page; each page is parsed once per process."""
    return Reader(page)


def test_every_model_makes_a_whole_page_with_its_analysis_inside(any_page):
    model, page = any_page
    seen = read(page)
    assert page.rstrip().endswith("</html>")
    assert json.loads(seen.raw["script#analysis"]) == json.loads(json.dumps(model))
    assert len(page.encode()) < 2_500_000


def test_the_sections_come_in_the_order_that_a_reader_needs(experiment_page):
    seen = read(experiment_page)
    assert seen.all("section", "id") == [
        "verdict",
        "arms",
        "figures",
        "metrics",
        "classical",
        "statements",
        "gates",
        "method",
        "engine",
        "run",
    ]
    assert seen.all("figure", "id") == [
        f"figure-{name}"
        for name in ("distribution", "quantile_ratio", "tail", "blocks", "heatmap", "waits", "over_time")
    ]


def test_what_is_not_there_is_left_out_and_the_verdict_still_speaks():
    for model in (report_models.bare(), report_models.hollow("aa")):
        page = render_html(model)
        assert read(page).all("section", "id") == ["verdict"]
        assert "Cannot tell" in page


@pytest.mark.soak
def test_one_statement_alone_has_no_table(experiment):
    del experiment["statements"][1:]
    assert "statements" not in read(render_html(experiment)).all("section", "id")


@pytest.mark.parametrize("kind", ["experiment", "curve"])
def test_hostile_text_changes_nothing_but_the_words(kind):
    kind_of_model = {"experiment": report_models.experiment, "curve": report_models.curve}[kind]
    tame = read(rendered.page(kind_of_model()))
    hostile = read(rendered.page(report_models.hostile(kind)))
    plain = {tag for tag, _ in tame.tags}
    assert {tag for tag, _ in hostile.tags} <= plain | {"small", "tspan"}
    assert "img" not in plain
    assert hostile.raw["script#"] == tame.raw["script#"]
    assert not any(name.startswith("on") for _, given in hostile.tags for name in given)
    words = "".join(hostile.words)
    assert "</script><img src=x onerror=alert(1)>" in words
    assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b", words)


def test_hostile_text_shows_no_control_and_no_direction_character(hostile):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e]", rendered.page(hostile))


def test_the_policy_names_exactly_the_style_and_the_script_of_the_page(experiment_page):
    seen = read(experiment_page)
    policy = next(
        given["content"]
        for tag, given in seen.tags
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    for kind, raw in (("style", seen.raw["style#"]), ("script", seen.raw["script#"])):
        digest = base64.b64encode(hashlib.sha256(raw.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_nothing_on_the_page_points_outside(any_page):
    seen = read(any_page[1])
    for _, given in seen.tags:
        assert not {"src", "srcset", "action", "style", "background"} & given.keys()
        link = given.get("href")
        assert link is None or link.startswith(("#", "data:image/svg+xml,"))
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", "".join(seen.raw["style#"]))


def test_identifiers_are_unique_and_links_inside_have_an_end(any_page):
    seen = read(any_page[1])
    names = [given["id"] for _, given in seen.tags if "id" in given]
    assert len(names) == len(set(names))
    ends = {link[1:] for _, given in seen.tags if (link := given.get("href") or "").startswith("#")}
    assert ends <= set(names)


def test_headings_go_down_one_step_at_a_time(any_page):
    levels = [int(tag[1]) for tag, _ in read(any_page[1]).tags if tag in ("h1", "h2", "h3")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_figures_for_paper_and_phone_are_there_with_words_for_a_screen_reader(experiment_page):
    seen = read(experiment_page)
    labels = [given.get("aria-label") for tag, given in seen.tags if given.get("role") == "img"]
    assert len(labels) == 14
    assert all(label and "." in label for label in labels)


def test_the_words_of_the_verdict_and_the_numbers_of_the_metrics_are_there(experiment_page):
    words = " ".join("".join(read(experiment_page).words).replace("\u202f", " ").split())
    for expected in (
        "Slower",
        "6.6 % slower (95 % interval 5.9 to 7.3 %, 20 blocks)",
        "52 to 190 needed",
        "seed 7",
        "Grey: changes below 2 %",
        "assumes independent waits",
        "10⁻¹⁵⁰⁴⁷",
        "Next: Lower the rate",
        "not known",
        "shared_buffers",
        "slices of 50 ms",
        "work_mem = 4 MB",
        "2 × error 40001",
    ):
        assert expected in words


def test_an_aa_page_says_that_every_difference_is_noise():
    page = render_html(report_models.aa())
    assert "Noise floor" in page
    assert "every difference here is noise" in page


def test_a_curve_page_shows_the_shapes_and_the_one_chosen(curve):
    page = render_html(curve)
    assert page.index('id="figure-curve"') < page.index('id="figure-distribution"')
    assert page.count("chosen</span>") == 1


def test_json_inside_a_script_is_ascii_without_markup_and_knows_no_nan():
    model = {"a": "</script>&\u2028\ud800", "b": math.nan, "c": [math.inf, 1.5], "d": (1,)}
    embedded = embedded_json(model)
    assert embedded.isascii()
    assert not set("<>&") & set(embedded)
    assert json.loads(embedded) == {
        "a": "</script>&\u2028\ud800",
        "b": None,
        "c": [None, 1.5],
        "d": [1],
    }


def test_a_page_is_written_whole(tmp_path):
    path = write_html(report_models.bare(), tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_written_is_an_error_with_its_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError) as caught:
        write_html(report_models.bare(), tmp_path / "file" / "report.html")
    assert "report.html" in str(caught.value)


@pytest.mark.soak
def test_the_same_model_gives_the_same_page(experiment):
    assert render_html(experiment) == render_html(experiment)


def test_nothing_heavy_is_imported_before_it_is_used():
    heavy = {"altair", "vl_convert", "jinja2", "markupsafe", "rich", "numpy", "jsonschema"}
    check = (
        "import sys; import dbdyno.report.html, dbdyno.report.terminal, dbdyno.report.figures; "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_what_a_sentence_has_in_backticks_is_code_and_stays_escaped():
    assert str(code_spans("run `dbdyno report` <b> now")) == "run <code>dbdyno report</code> &lt;b&gt; now"
    assert str(code_spans("`<script>`")) == "<code>&lt;script&gt;</code>"
    assert str(code_spans("a lone ` stays")) == "a lone ` stays"
