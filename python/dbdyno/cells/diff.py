"""Difference of two collections: what the cells' counters did in between.

A side is a recording (its last round), or a file with CellCLI's output. The flash log has a separate part, because
users often ask about it: which device finished first in which share of the writes, how many outliers were prevented,
and why writes bypassed the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.cells.catalogue import metric
from dbdyno.cells.collect import column_of, pattern_of
from dbdyno.cells.collection import Collection
from dbdyno.cells.documents import read_any
from dbdyno.cells.files import cell_of, text_of
from dbdyno.cells.findings import AMBIGUOUS_NUMBER, FOREIGN_NUMBER, OTHER_LANGUAGE
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing
from dbdyno.cells.page import DiffPage, FlashLog
from dbdyno.cells.rates import GONE, NEW, NOT_REFRESHED, RESET, Change, changes, latencies, totals

SCHEMA = 1
LEVEL_Z = 1.959963984540054
"""Quantile of the normal distribution for two-sided 95 %."""


def collection_of(text: str, *, mask: str | None = None, runs: Path = Path("runs")) -> Collection:
    """Return a collection from a recording (path, name or 'last') or from a file.

    Raises:
        CellsError: The recording or file cannot be read, or contains no metrics.
    """
    from dbdyno.cells.record import recorded_round
    from dbdyno.evidence.run import find_run

    path = Path(text)
    if path.is_file():
        return read_collection(path, mask=mask)
    pattern = pattern_of(mask)
    found = recorded_round(find_run(text, runs))
    for column in found.columns:
        if pattern is not None:
            kept = [r for r in column.readings if pattern.fullmatch(r.name)]
            column.listing.readings = kept
    return found


def read_collection(path: Path, *, mask: str | None = None, cell: str = "", details: bool = False) -> Collection:
    """Return the output of CellCLI or cellsrvstat in a file, plain or compressed, with a column per cell.

    Args:
        path: The file.
        mask: Regular expression; readings whose name does not match are left out.
        cell: Name of the cell if the file does not name it; the default is derived from the file's name.
        details: Accept a file that has only alerts and configuration.

    Raises:
        CellsError: The file cannot be read, or contains no metrics.
    """
    listing = read_any(text_of(path), cell or cell_of(path))
    if not listing.readings and not (details and listing.details):
        first = listing.unread[0] if listing.unread else None
        seen = f"; line {first.line} is {first.text[:60]!r}" if first else ""
        step = (
            "give the output of `cellcli -e list metriccurrent` or of cellsrvstat; any other file needs a header line "
            "with column names, including name and value: cell;time;name;object;value"
        )
        if first and first.why in (FOREIGN_NUMBER, AMBIGUOUS_NUMBER):
            seen, step = f" that can be read{seen}, {first.why}", OTHER_LANGUAGE
        raise CellsError(f"contains no metric{seen}", where=str(path), next_step=step)
    pattern = pattern_of(mask)
    by_cell: dict[str, Listing] = {}
    for reading in listing.readings:
        by_cell.setdefault(reading.cell, Listing()).readings.append(reading)
    for told in listing.errors:
        by_cell.setdefault(told.cell, Listing()).errors.append(told)
    for entry in listing.details:
        by_cell.setdefault(entry.get("", cell or cell_of(path)), Listing()).details.append(entry)
    columns = []
    for name, own in by_cell.items():
        own.started_ns = {c: at for c, at in listing.started_ns.items() if c == name}
        columns.append(column_of(Host(name, name), own, pattern))
    columns[0].listing.unread = listing.unread
    if listing.unread and not columns[0].problem:
        worst = listing.unread[0]
        columns[0].problem = f"{path}:{worst.line}: {worst.text[:60]!r} was not understood" + (
            f", and {len(listing.unread) - 1} more lines" if len(listing.unread) > 1 else ""
        )
        if any(entry.why in (FOREIGN_NUMBER, AMBIGUOUS_NUMBER) for entry in listing.unread):
            columns[0].next_step = OTHER_LANGUAGE
    return Collection(columns)


def diff_page(before: Collection, after: Collection, *, by: str = "cell") -> DiffPage:
    """Return the page of a difference: counters, latencies, the flash log, and counters without a difference."""
    if not {c.host.name for c in before.columns} & {c.host.name for c in after.columns}:
        before = _renamed_alone(before, after)
    found = changes_between(before, after)
    over = totals(found, by)
    return {
        "schema": SCHEMA,
        "kind": "cells",
        "page": "diff",
        "by": by,
        "seconds": _seconds(found),
        "rows": [
            {
                "metric": name,
                "cell": cell,
                "object": item,
                "delta": delta,
                "per_s": per_s,
                "unit": metric(name).unit,
                "description": metric(name).meaning,
            }
            for (name, cell, item), (delta, per_s) in sorted(over.items())
        ],
        "latencies": [
            {
                "metric": row.name,
                "cell": row.cell,
                "object": row.object,
                "value": row.value,
                "unit": row.unit,
                "requests": row.requests,
            }
            for row in latencies(found, over="all" if by == "object" else "cell")
        ],
        "flash_log": flash_log(found),
        "without": [
            {"cell": c.cell, "metric": c.name, "object": c.object, "verdict": c.verdict}
            for c in found
            if c.verdict in (NOT_REFRESHED, RESET, NEW, GONE)
        ],
        "problems": [f"{column.host.name}: {column.problem}" for column in [*before.failed, *after.failed]],
    }


def changes_between(before: Collection, after: Collection) -> list[Change]:
    """Return the change of every counter between two collections.

    If a cell's service restarted in between, the cell has no differences, even if its counters are higher than before.
    """
    again = _began_anew(before, after)
    return [
        replace(change, delta=None, per_s=None, verdict=RESET)
        if change.delta is not None and change.cell in again
        else change
        for change in changes(before.readings, after.readings)
    ]


def flash_log(changes: Sequence[Change]) -> FlashLog | None:
    """Return the flash log's statistics over all cells with valid differences, or None if there were no writes."""
    sums = {name: delta for (name, _, _), (delta, _) in totals(changes, "all").items()}
    disk, flash = sums.get("FL_DISK_FIRST", 0.0), sums.get("FL_FLASH_FIRST", 0.0)
    writes = disk + flash
    if not writes:
        return None
    low, high = share_interval(flash, writes)
    reasons = {
        name.removeprefix("FL_IO_W_SKIP_"): delta
        for name, delta in sums.items()
        if name.startswith("FL_IO_W_SKIP_") and delta
    }
    return {
        "writes": writes,
        "disk_first": disk,
        "flash_first": flash,
        "flash_share": flash / writes,
        "flash_share_low": low,
        "flash_share_high": high,
        "identity_holds": sums.get("FL_IO_W") in (None, writes),
        "prevented_outliers": sums.get("FL_PREVENTED_OUTLIERS"),
        "actual_outliers": sums.get("FL_ACTUAL_OUTLIERS"),
        "flash_only_outliers": sums.get("FL_FLASH_ONLY_OUTLIERS"),
        "passed_by": reasons,
    }


def share_interval(part: float, whole: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which also holds for rare events (Wilson 1927).

    Writes of one load depend on each other, so the true interval is wider.
    """
    share, z2 = part / whole, LEVEL_Z**2
    centre = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    spread = share * (1 - share) / whole + z2 / (4 * whole**2)
    half = LEVEL_Z * math.sqrt(spread) / (1 + z2 / whole)
    return max(0.0, centre - half), min(1.0, centre + half)


def _began_anew(before: Collection, after: Collection) -> set[str]:
    began = {c.host.name: c.started_ns for c in before.columns}
    return {
        column.host.name
        for column in after.columns
        if None not in (column.started_ns, began.get(column.host.name)) and column.started_ns != began[column.host.name]
    }


def _seconds(changes: Sequence[Change]) -> dict[str, float]:
    """Return the time between the two collections of each cell, in seconds."""
    return {c.cell: c.seconds for c in changes if c.seconds is not None}


def _renamed_alone(before: Collection, after: Collection) -> Collection:
    """Treat two files as files of the same cell if each has a single, unnamed column."""
    if len(before.columns) == len(after.columns) == 1:
        column = before.columns[0]
        name = after.columns[0].host.name
        column.host = Host(name, name)
        column.listing.readings = [r._replace(cell=name) for r in column.readings]
    return before
