"""The chart of active sessions drawn without Vega shows what Vega draws from the same data."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET

import pytest

from dbdyno.base.json_types import JsonObject
from dbdyno.report import svg
from dbdyno.report.figures import NARROW, WIDE, Look, session_history, session_svg, theme
from fresh_dice import fresh_dice

BEGIN_US = 1_764_115_200 * 10**6
STEP_US = 300 * 10**6
RECTANGLE = re.compile(r"M([-\d.]+),([-\d.]+)h([-\d.]+)v([-\d.]+)h")


LEGEND = (10.0, 10.0)
"""Width and height of a square of our legend."""


def drawn(dice: random.Random, buckets: int, events: int = 6) -> JsonObject:
    classes = dice.sample(["CPU", "lock", "data read", "log write", "network"], dice.randint(1, 5))
    return {
        "from_us": BEGIN_US,
        "to_us": BEGIN_US + buckets * STEP_US,
        "width_us": STEP_US,
        "at_us": [BEGIN_US + at * STEP_US for at in range(buckets)],
        "classes": [
            {"name": name, "values": [dice.choice((None, 0, dice.random() * 9)) for _ in range(buckets)]}
            for name in classes
        ],
        "events": [
            {
                "kind": dice.choice(("checkpoint", "object", "restart")),
                "what": "index <b> & co",
                "at_us": BEGIN_US + dice.randrange(buckets) * STEP_US,
                "after_us": None,
            }
            for _ in range(events)
        ],
    }


def rectangles(text: str) -> set[tuple[str, float, float, float, float]]:
    """Return the rectangles of the stack with their colours, rounded to pixels."""
    found = set()
    for path in ET.fromstring(text).iter():
        fill = path.get("fill")
        if path.tag.endswith("path") and fill in theme.CLASSES.values() and not path.get("transform"):
            for one in RECTANGLE.findall(path.get("d") or ""):
                x, y, width, height = map(float, one)
                found.add((str(fill), x, y, width, height))
    return found


@pytest.mark.parametrize("look", (WIDE, NARROW), ids=("wide", "narrow"))
def test_the_rectangles_are_where_vega_has_them(look: Look) -> None:
    model = drawn(fresh_dice(), 20)
    mine = session_svg.svg(model, look, "label")
    chart = session_history.draw(model, look)
    assert mine and chart is not None
    theirs = rectangles(svg.inline(chart, "x", "label"))
    ours = {one for one in rectangles(mine) if one[3:] != LEGEND}
    assert len(ours) == len(theirs)
    for left, right in zip(sorted(ours), sorted(theirs), strict=True):
        assert left[0] == right[0]
        assert left[1:] == pytest.approx(right[1:], abs=0.06)


def test_names_and_texts_are_escaped_and_the_picture_is_well_formed() -> None:
    model = drawn(random.Random(5), 10)
    model["classes"][0]["name"] = "</svg><script>alert(1)</script>\"'"
    text = session_svg.svg(model, WIDE, 'label "of" <it>')
    assert text is not None
    names = {one.tag for one in ET.fromstring(text).iter()}
    assert names == {"svg", "g", "path", "line", "text"}


def test_many_rectangles_are_one_path_per_class_and_without_sessions_there_is_no_picture() -> None:
    model = drawn(random.Random(7), 1500, events=0)
    text = session_svg.svg(model, WIDE, "label")
    assert text is not None
    assert "data-tip" not in text
    assert text.count("<path") <= 2 * len(model["classes"])
    assert session_svg.svg(model | {"classes": []}, WIDE, "label") is None
