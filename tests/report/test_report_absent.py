"""Unknown values are shown as a dash or left out, and never as 0, on the page of every kind of model.

A log with whole seconds said "p50 before 0 ns". These tests remove one number after the other from each model; no page
may then show an additional zero.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pinned_pages import PAGES

from dbdyno.base.errors import Error
from dbdyno.report.terminal import render_text

ZERO = re.compile(r"(?<![\w.,:/+−-])[+−-]?0(?:\.0+)?(?![\w.,:/-])(?: ?(?:ns|us|µs|ms|s|%|B|kB|MB|GB|/s))?")
EACH = 12
STRUCTURE = {"schema", "version", "level", "depth", "arm", "session", "block", "worker", "id", "parent", "number"}
"""Keys that identify a row and are not measurements."""


def leaves(model: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all numbers other than zero."""
    if isinstance(model, dict):
        for key, value in model.items():
            if key not in STRUCTURE:
                yield from leaves(value, (*place, key))
    elif isinstance(model, list):
        for at, value in enumerate(model):
            yield from leaves(value, (*place, at))
    elif isinstance(model, int | float) and not isinstance(model, bool) and model:
        yield place


def without(model: Any, place: tuple[str | int, ...]) -> Any:
    """Return the model with one number set to None; parts that do not contain it are shared with the model."""
    if not place:
        return None
    made = copy.copy(model)
    made[place[0]] = without(made[place[0]], place[1:])
    return made


def kinds_of(places: list[tuple[str | int, ...]], dice: random.Random) -> list[tuple[str | int, ...]]:
    """Return one path of each kind; paths with the same keys, in any row, are of one kind."""
    found: dict[tuple[str, ...], list[tuple[str | int, ...]]] = {}
    for place in places:
        found.setdefault(tuple(str(key) if isinstance(key, str) else "*" for key in place), []).append(place)
    return [dice.choice(each) for each in found.values()]


def zeros_of(model: Any) -> list[str]:
    """The zeros that a page shows."""
    return ZERO.findall(render_text(model, width=200, color=False))


def wrong(model: Any, each: int | None, dice: random.Random) -> list[str]:
    """Return the paths of numbers that are shown as zero if they are unknown."""
    before, places = len(zeros_of(model)), kinds_of(list(leaves(model)), dice)
    dice.shuffle(places)
    found = []
    for place in places[:each]:
        try:
            after = len(zeros_of(without(model, place)))
        except (Error, TypeError):  # not a number that may be missing
            continue
        if after > before:
            found.append(".".join(map(str, place)))
    return found


@pytest.mark.drawn(drawn=False)
@pytest.mark.parametrize("name", PAGES)
def test_a_number_that_is_not_known_is_no_zero(name: str):
    seed = random.randrange(2**32)
    print("seed", seed)
    assert wrong(PAGES[name](), EACH, random.Random(seed)) == []


@pytest.mark.soak
@pytest.mark.drawn(drawn=False)
@pytest.mark.parametrize("name", PAGES)
def test_none_of_all_numbers_that_are_not_known_is_a_zero(name: str):
    assert wrong(PAGES[name](), None, random.Random(1)) == []
