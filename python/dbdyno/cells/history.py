"""The metric history that cells store, written as a recording, for the time before dbdyno recorded.

Cells keep every minute for a week (METRICHISTORY). It is queried in pieces of a few minutes, because an hour of one
cell is tens of megabytes, with constant conditions only: `ageInMinutes > 29 and ageInMinutes < 45`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.cells import configuration
from dbdyno.cells.archive import recording_of
from dbdyno.cells.collect import column_of, knows_no_xml
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host
from dbdyno.cells.identity import CellNames
from dbdyno.cells.ssh import Access, Answer, Fleet
from dbdyno.evidence.run import Run

PIECE_MIN = 15
TEXT = " attributes name, metricObjectName, metricValue, collectionTime"
OnValues = Callable[[int, int], None]


@dataclass
class History:
    """Result of reading the history: run, rounds, values, problems by cell, cells reached under several addresses."""

    run: Run
    rounds: int
    values: int
    problems: dict[str, str] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)


def command(begin_min: int, end_min: int, *, xml: bool) -> str:
    """Return the command that lists values from `begin_min` (included) to `end_min` (excluded) minutes old."""
    where = f"where ageInMinutes > {begin_min - 1} and ageInMinutes < {end_min}"
    return f"cellcli {'-xml ' if xml else ''}-e 'list metrichistory{'' if xml else TEXT} {where}'"


def history(
    out: Path, hosts: Sequence[Host], access: Access, minutes: int, on_values: OnValues | None = None
) -> History:
    """Write the last minutes of every cell as a new run folder.

    Args:
        out: The new run folder.
        hosts: The cells.
        access: How cells are reached.
        minutes: How many minutes to fetch.
        on_values: Called after each piece with the minutes fetched so far and the number of values in the piece.

    Raises:
        CellsError: No cell has any history.
    """
    columns, names, problems, facts = asyncio.run(_ask_cells(hosts, access, minutes, on_values))
    if not any(column.readings for column in columns):
        first = next(iter(problems.items()), ("", "no metric"))
        raise CellsError(f"the history could not be read: {first[1]}", where=first[0] or "--last")
    named = Collection(columns)
    run, rounds, values = recording_of(named.columns, out)
    known = {names.name_of(host): own for host, own in facts.items()}
    run.save(
        status="complete",
        ended="history",
        cells=names.names_of(hosts),
        addresses=names.addresses,
        configuration={"first": known},
        history_minutes=minutes,
    )
    return History(run, rounds, values, problems, names.duplicate_sentences)


async def _ask_cells(
    hosts: Sequence[Host], access: Access, minutes: int, on_values: OnValues | None
) -> tuple[list[Column], CellNames, dict[str, str], configuration.FactsOf]:
    names = CellNames()
    columns: list[Column] = []
    problems: dict[str, str] = {}
    facts = await configuration.read_configuration(hosts, access)
    names.learn(facts)
    plain: set[Host] = set()
    async with Fleet(hosts, access) as fleet:
        for begin in range(0, minutes, PIECE_MIN):
            end = min(begin + PIECE_MIN, minutes)
            found = await _piece(fleet, plain, begin, end)
            one = Collection([_column(answer) for answer in found])
            names.apply_names(one)
            problems |= {column.host.name: column.problem for column in one.columns if column.problem}
            columns += one.columns
            if on_values:
                on_values(end, sum(len(column.readings) for column in one.columns))
    return columns, names, problems, facts


async def _piece(fleet: Fleet, plain: set[Host], begin: int, end: int) -> list[Answer]:
    """Query one piece of every cell; a cell that does not know XML is queried for text from then on."""
    ask = {host: command(begin, end, xml=host not in plain) for host in fleet.hosts}
    answers = await fleet.run(ask)
    again = [answer.host for answer in answers if answer.host not in plain and knows_no_xml(answer)]
    plain.update(again)
    if again:
        anew = await fleet.run(dict.fromkeys(again, command(begin, end, xml=False)), only=again)
        by_host = {answer.host: answer for answer in anew}
        answers = [by_host.get(answer.host, answer) for answer in answers]
    return answers


def _column(answer: Answer) -> Column:
    """Return a piece as a column; an empty piece is not an error, because the cell may have started only later."""
    listing = read_any(answer.output, answer.host.name)
    return column_of(answer.host, listing, None, answer, history=True)
