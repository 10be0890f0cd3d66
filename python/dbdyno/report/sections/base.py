"""What a section is, and the few things that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbdyno import decisions
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis

View = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """One part of the page: anchor, heading, words (None: leave it out). The template has the
    anchor's name unless another is given."""

    name: str
    title: str
    view: Callable[[Analysis], View | None]
    template: str = ""


def decision(given: Any) -> View:
    """A decision as a word with a tone: `good`, `bad`, `even` or `doubt`."""
    known = decisions.answer(given)
    return {"word": known.word, "tone": known.tone}


def interval(low: object, high: object) -> str:
    """An interval of shares in percent."""
    if fmt.number(low) is None or fmt.number(high) is None:
        return fmt.NONE
    return f"{fmt.percent(low, 3)} to {fmt.percent(high, 3)}"


def arm(analysis: Analysis, index: Any) -> View:
    """An arm's name with the colour that the figures give it."""
    from dbdyno.report.figures import theme  # with all figures behind it

    names = reading.arm_names(analysis)
    name = reading.arm_name(names, index)
    places = list(names)
    baseline = reading.baseline(analysis)
    colours = theme.arm_colours(len(places), places.index(baseline) if baseline in places else None)
    colour = colours[places.index(index)] if index in places else theme.FAINT
    return {"name": name, "colour": colour}
