"""Archived answers as evidence: files of CellCLI or dcli, metric history, XML, JSON.

A file becomes a round of a run of kind `cells`; a history, with its times of collection, one round
a minute. What a file says no time for gets the file's own time. What was not understood is counted
and told with its line; the rest is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.cells.collect import Collection, Column
from dbdyno.cells.diff import from_file
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading, Unread
from dbdyno.cells.record import Pace, keep, new_recording
from dbdyno.errors import CellsError
from dbdyno.evidence.run import Run

MINUTE_NS = 60 * 10**9


@dataclass
class Imported:
    """What an import made: the run, its rounds and values, and what was not understood."""

    run: Run
    rounds: int
    values: int
    unread: list[tuple[Path, Unread]]
    refused: list[CellsError]


def import_files(files: Sequence[Path], out: Path) -> Imported:
    """Imports files, oldest first, into a new run folder.

    Raises `CellsError` when none holds a metric; a single bad file is refused and the rest goes on.
    """
    unread: list[tuple[Path, Unread]] = []
    refused: list[CellsError] = []
    rounds: list[Collection] = []
    for file in files:
        try:
            found = from_file(file)
        except CellsError as error:
            refused.append(error)
            continue
        for column in found.columns:
            unread += [(file, entry) for entry in column.listing.unread]
        rounds += _rounds(found, file)
    if not rounds:
        raise refused[0]
    rounds.sort(key=lambda one: min(column.asked_ns for column in one.columns))
    names = list(dict.fromkeys(column.host.name for one in rounds for column in one.columns))
    run = new_recording(out, [Host(name, name) for name in names], Pace())
    values = sum(keep(run, index, one) for index, one in enumerate(rounds))
    run.save(status="complete", ended="imported", files=[file.name for file in files])
    return Imported(run, len(rounds), values, unread, refused)


def _rounds(found: Collection, file: Path) -> list[Collection]:
    """One round where no metric of an object comes twice, else one a minute."""
    now = file.stat().st_mtime_ns
    readings = found.readings
    if len({(r.cell, r.name, r.object) for r in readings}) == len(readings):
        for column in found.columns:
            times = [r.at_ns for r in column.readings if r.at_ns is not None]
            column.asked_ns = max(times, default=now)
        return [found]
    minutes: dict[int, dict[str, list[Reading]]] = {}
    for reading in readings:
        at_ns = now if reading.at_ns is None else reading.at_ns
        cells = minutes.setdefault(at_ns // MINUTE_NS, {})
        cells.setdefault(reading.cell, []).append(reading)
    return [
        Collection([
            Column(Host(cell, cell), Listing(own), max(r.at_ns or now for r in own), 0.0)
            for cell, own in cells.items()
        ])
        for _, cells in sorted(minutes.items())
    ]  # fmt: skip
