"""One collection of the metrics of every cell, over SSH, with the problems of each cell.

CellCLI is queried with constant commands only: masks and filters of the user are applied here, never sent. XML is
requested first, because its values are not rounded and carry their times; if a cell does not know `-xml`, its text
output is parsed. A cell that answers with an error or an incomplete listing, or does not answer, still has its column,
with the problem noted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

from dbdyno.base.errors import CellsError, errors_as
from dbdyno.cells.aggregate import is_weight
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host
from dbdyno.cells.identity import CellNames
from dbdyno.cells.listing import Listing, Reading, visible
from dbdyno.cells.ssh import Access, Answer, Fleet

CURRENT = "cellcli -xml -e list metriccurrent"
CURRENT_TEXT = "cellcli -e list metriccurrent attributes name, metricObjectName, metricValue, collectionTime"
DEFINITIONS = "cellcli -xml -e list metricdefinition attributes name, description"

OnAnswer = Callable[[Answer], None]


async def collect(
    fleet: Fleet, *, mask: str | None = None, describe: bool = False, on_answer: OnAnswer | None = None
) -> Collection:
    """Query every cell of an open fleet.

    Args:
        fleet: The open fleet.
        mask: Regular expression; readings whose name does not match are left out.
        describe: Also fetch the descriptions of the metrics.
        on_answer: Called with each answer as it arrives.

    Raises:
        CellsError: The mask is not a regular expression.
    """
    pattern = pattern_of(mask)
    answers = await fleet.run(CURRENT, on_answer=on_answer)
    plain = [at for at, answer in enumerate(answers) if knows_no_xml(answer)]
    if plain:
        again = Fleet([answers[at].host for at in plain], fleet.access)
        async with again:
            for at, answer in zip(plain, await again.run(CURRENT_TEXT), strict=True):
                answers[at] = answer
    columns = [_column(answer, pattern) for answer in answers]
    descriptions: dict[str, str] = {}
    if describe:
        descriptions = await _descriptions(fleet, columns)
    return Collection(columns, descriptions)


def collect_once(
    hosts: Sequence[Host],
    access: Access,
    *,
    mask: str | None = None,
    describe: bool = False,
    on_answer: OnAnswer | None = None,
) -> Collection:
    """Query every cell once, from synchronous code; each cell appears once, under the name it reports."""

    async def work() -> Collection:
        async with Fleet(hosts, access) as fleet:
            return await collect(fleet, mask=mask, describe=describe, on_answer=on_answer)

    found = asyncio.run(work())
    CellNames().apply_names(found)
    return found


def pattern_of(mask: str | None, option: str = "--mask") -> re.Pattern[str] | None:
    """Compile a mask that must match a whole name, ignoring case; None if it is empty.

    Raises:
        CellsError: The mask is not a regular expression.
    """
    if not mask:
        return None
    step = "write an expression such as 'FC_IO_RQ_R.*'; '.*' matches anything"
    with errors_as(CellsError, re.error, f"{mask!r} is not a valid regular expression", option, step):
        return re.compile(mask, re.IGNORECASE)


def column_of(
    host: Host,
    listing: Listing,
    pattern: re.Pattern[str] | None,
    answer: Answer | None = None,
    *,
    history: bool = False,
) -> Column:
    """Return a cell's column: the readings whose names match `pattern`, and the first problem in words.

    With `history`, a metric occurs once per collection time in the listing, and an empty listing is not an error.
    """
    kept = [r for r in listing.readings if pattern is None or pattern.fullmatch(r.name)]
    everything = listing.readings
    rates = [r._replace(cell=host.name) for r in listing.readings if is_weight(r.name)]
    listing.readings = [r._replace(cell=host.name) for r in kept]
    problem, step = (answer.problem, answer.next_step) if answer else (None, None)
    if answer and not history:
        problem = problem or _once_each(listing)
    if listing.errors:
        first = listing.errors[0]
        problem = problem or f"{first.code}: {first.message}"
    elif answer and not problem and not everything and (answer.code or not (listing.unread or history)):
        said = (answer.errors or answer.output).strip().split("\n")[0][:80]
        problem = f"no metrics (exit {answer.code}){f': {visible(said)}' if said else ''}"
        step = "check that the user may run cellcli there"
    elif listing.unread:
        worst = listing.unread[0]
        lines = len(listing.unread)
        problem = problem or (
            f"{lines} line{'s' * (lines > 1)} not understood, the first is line {worst.line}: {worst.text[:60]!r}"
        )
    asked_ns, seconds = (answer.asked_ns, answer.seconds) if answer else (0, 0.0)
    return Column(host, listing, asked_ns, seconds, problem, step, rates, everything)


def _once_each(listing: Listing) -> str | None:
    """Remove repeated values of a metric and object, except the first; return a problem if there were any."""
    first: dict[tuple[str, str], Reading] = {}
    for reading in listing.readings:
        first.setdefault((reading.name, reading.object), reading)
    again = len(listing.readings) - len(first)
    if not again:
        return None
    listing.readings = list(first.values())
    return f"{again} value{'s' * (again > 1)} occurred twice; dbdyno keeps the first of each"


def _column(answer: Answer, pattern: re.Pattern[str] | None) -> Column:
    return column_of(answer.host, read_any(answer.output, answer.host.name), pattern, answer)


def knows_no_xml(answer: Answer) -> bool:
    """Return True if the cell refused the option `-xml` but not the query itself."""
    return answer.problem is None and bool(
        re.search(r"CELL-0(?:1504|1521)|unknown option|invalid option", answer.output, re.I)
    )


async def _descriptions(fleet: Fleet, columns: list[Column]) -> dict[str, str]:
    """Return the metric descriptions of the first cell that answers; empty if none does."""
    for column in columns:
        if column.problem:
            continue
        async with Fleet([column.host], fleet.access) as one:
            (answer,) = await one.run(DEFINITIONS)
        found = {
            entry["name"]: entry["description"].strip('"')
            for entry in read_any(answer.output).details
            if entry.get("name") and entry.get("description")
        }
        if found:
            return found
    return {}
