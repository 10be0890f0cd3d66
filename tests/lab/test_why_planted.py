"""Planted causes on real servers and on the model: the report names the planted one first.

python -m pytest -s -m soak tests/lab/test_why_planted.py     # prints the score, case by case
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import why_cases
import why_held_out
from why_planted import RESET, SETTINGS, Case, asked, hit, run_sql, told, why_of_plan

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

LEAST = 18
"""Of 20."""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings=SETTINGS) as running:
        yield running


def cleaned(engine: EmbeddedPostgres) -> None:
    run_sql(engine, *RESET)


def score(cases: tuple[Case, ...], engine: EmbeddedPostgres, folder: Path) -> int:
    """How many of the cases are named, each printed."""
    hits = 0
    for number, case in enumerate(cases):
        cleaned(engine)
        began, place = time.monotonic(), folder / str(number)
        place.mkdir()
        found = asked(case, engine, place)
        hits += hit(case, found)
        print(told(case, found, began), flush=True)
    print(f"{hits} of {len(cases)} planted causes named first")
    return hits


def test_a_slower_log_of_the_model_is_the_first_cause(tmp_path: Path) -> None:
    case = next(one for one in why_cases.CASES if one.names_it == ("device",))
    why = why_of_plan(case, tmp_path)
    assert hit(case, why), why
    first = why["causes"][0]
    assert first["low"] < first["amount"] < first["high"] and first["share"] == pytest.approx(1, abs=0.01)
    assert first["amount"] + why["rest"] == pytest.approx(why["amount"]), "causes and the rest add up"


@pytest.mark.soak
def test_the_cases_that_the_rules_were_written_with(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    assert score(why_cases.CASES, engine, tmp_path) >= len(why_cases.CASES) - 1


@pytest.mark.soak
def test_cases_that_nobody_had_seen(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    assert len(why_held_out.CASES) == 20
    assert score(why_held_out.CASES, engine, tmp_path) >= LEAST
