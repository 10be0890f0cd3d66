"""Import of archived answers as evidence: output of CellCLI or dcli, metric history, XML, JSON, cellsrvstat.

A file becomes as many rounds of a run of kind `cells` as it has collections; collections of different cells within a
minute, from different files, form one round. Values without a time get the file's modification time. Lines that cannot
be parsed are counted and reported; all others are imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.cells.alerts import AlertMemory
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.configuration import facts_in
from dbdyno.cells.diff import read_collection
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import CellError, Listing, UnreadLine
from dbdyno.cells.record import Pace, new_recording, save_round
from dbdyno.evidence.run import Run

MINUTE_NS = 60 * 10**9
WRITERS = 8


@dataclass
class ImportResult:
    """Result of an import: the run, its rounds and values, and what could not be imported.

    `unread` are lines that could not be parsed, `errors` are errors that cells printed, `refused` are errors about
    files without metrics; `alerts` is the number of alerts, `described` the number of cells with a configuration.
    """

    run: Run
    rounds: int
    values: int
    unread: list[tuple[Path, UnreadLine]]
    errors: list[tuple[Path, CellError]]
    refused: list[CellsError]
    alerts: int = 0
    described: int = 0


def import_files(files: Sequence[Path], out: Path, *, cell: str = "") -> ImportResult:
    """Import files into a new run folder, in order of their times.

    Args:
        files: The files; a single bad file is refused and the others are imported.
        out: The new run folder.
        cell: Name of the cell for files that do not name it.

    Raises:
        CellsError: No file holds a metric.
    """
    unread: list[tuple[Path, UnreadLine]] = []
    errors: list[tuple[Path, CellError]] = []
    refused: list[CellsError] = []
    columns: list[Column] = []
    beside: dict[str, list[dict[str, str]]] = {}
    for file in files:
        try:
            found = read_collection(file, cell=cell, details=True)
        except CellsError as error:
            refused.append(error)
            continue
        now = file.stat().st_mtime_ns
        for column in found.columns:
            unread += [(file, entry) for entry in column.listing.unread]
            errors += [(file, told) for told in column.listing.errors]
            columns += _collections(column, now)
            beside.setdefault(column.host.name, []).extend(column.listing.details)
    if not columns:
        raise _no_metric(files, refused)
    watch = AlertMemory()
    alerted = {own: told for own, seen in beside.items() if (told := watch.unreported(own, seen))}
    facts = {own: said for own, seen in beside.items() if (said := facts_in(seen))}
    run, rounds, values = recording_of(columns, out, alerted, facts)
    run.save(status="complete", ended="imported", files=[file.name for file in files])
    alerts = sum(len(told) for told in alerted.values())
    return ImportResult(run, rounds, values, unread, errors, refused, alerts, len(facts))


def _no_metric(files: Sequence[Path], refused: Sequence[CellsError]) -> CellsError:
    """Return the error for files without metrics, since alerts and configuration are imported only with metrics."""
    if refused:
        return refused[0]
    return CellsError(
        "contain alerts or configuration, but no metrics",
        where=", ".join(str(file) for file in files),
        next_step="import the files together with the output of `list metriccurrent` or `list metrichistory`",
    )


def recording_of(
    columns: Sequence[Column],
    out: Path,
    alerts: dict[str, list[dict[str, str]]] | None = None,
    facts: dict[str, dict[str, str]] | None = None,
) -> tuple[Run, int, int]:
    """Write columns as a new run folder, alerts in round 0; return the run, and its numbers of rounds and of values."""
    rounds = _rounds([one for column in columns for one in _collections(column, column.asked_ns)])
    rounds[0].alerts = alerts or {}
    names = list(dict.fromkeys([*(column.host.name for column in columns), *(alerts or {}), *(facts or {})]))
    run = new_recording(out, [Host(name, name) for name in names], Pace())
    if facts:
        run.save(configuration={"first": facts})
    with ThreadPoolExecutor(WRITERS) as pool:  # the slow part is syncing each round to disk
        values = sum(pool.map(save_round, repeat(run), range(len(rounds)), rounds))
    return run, len(rounds), values


def _collections(column: Column, now: int) -> Iterable[Column]:
    """Yield the collections of one cell in one file: one, or one per time if a metric of an object occurs twice."""
    readings = column.readings
    if not readings:
        return
    if len({(r.name, r.object) for r in readings}) == len(readings):
        parts = {max((r.at_ns for r in readings if r.at_ns is not None), default=now): readings}
    else:
        parts = {}
        for reading in readings:
            parts.setdefault(now if reading.at_ns is None else reading.at_ns, []).append(reading)
    for at_ns, own in parts.items():
        listing = Listing(own, started_ns=column.listing.started_ns)
        yield Column(column.host, listing, at_ns, 0.0)


def _rounds(columns: Sequence[Column]) -> list[Collection]:
    """Group collections of different cells into rounds; a round lasts less than a minute from its first collection."""
    rounds: list[Collection] = []
    for column in sorted(columns, key=lambda one: one.asked_ns):
        last = rounds[-1].columns if rounds else []
        again = any(one.host.name == column.host.name for one in last)
        if not last or again or column.asked_ns - last[0].asked_ns >= MINUTE_NS:
            rounds.append(Collection([]))
        rounds[-1].columns.append(column)
    return rounds
