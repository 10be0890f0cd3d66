"""Successive collections, shown on a screen or recorded as evidence.

A run folder of kind `cells` has a block per round: `metrics/bNNNNNN.parquet` with source `cell:NAME`, written before
the block's record, so that an interrupted recording is readable up to its last complete round. Every value of a cell is
recorded, with the cell's own collection time (or this machine's time, if the cell reported none), regardless of any
mask on the screen. The manifest holds each cell's configuration (software, flash, disks, plan) at the first round and,
unless interrupted, at the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base.errors import CellsError
from dbdyno.base.json_types import JsonObject
from dbdyno.cells import configuration
from dbdyno.cells.alerts import EVERY_S, AlertMemory
from dbdyno.cells.catalogue import metric
from dbdyno.cells.collect import collect
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.cells.identity import CellNames, recorded_names
from dbdyno.cells.listing import Listing, Reading
from dbdyno.cells.ssh import Access, Fleet
from dbdyno.evidence.run import Block, Run, new_run

KIND = "cells"
PREFIX = "cell:"
REFRESH_S = 60.0


@dataclass(frozen=True)
class Pace:
    """Period of the rounds and duration of the recording, in seconds; None means until stopped."""

    every_s: float = REFRESH_S
    for_s: float | None = None


async def rounds(
    hosts: Sequence[Host],
    access: Access,
    pace: Pace,
    *,
    mask: str | None = None,
    alerts: bool = False,
    names: CellNames | None = None,
) -> AsyncIterator[Collection]:
    """Yield a collection per period, the first at once; each cell appears once, under the name that it reports.

    A round that takes longer than the period does not shift later rounds: the next round begins at the next multiple of
    the period.

    Args:
        hosts: The cells.
        access: How cells are reached.
        pace: Period and duration.
        mask: Regular expression; readings whose name does not match are left out.
        alerts: Also fetch alerts in the first round, every ten minutes, and in the last.
        names: The cells' names learnt so far; this function updates them.
    """
    watch, told_s = AlertMemory(), -math.inf
    names = names or CellNames()
    async with Fleet(hosts, access) as fleet:
        began, since_ns = time.monotonic(), time.time_ns()
        beat = 0
        while True:
            found = await collect(fleet, mask=mask)
            names.apply_names(found)
            passed = time.monotonic() - began
            last = _due(pace, beat, passed) is None
            if alerts and (last or passed - told_s >= EVERY_S):
                well = [column.host for column in found.columns if not column.problem]
                found.alerts, told_s = await watch.query_new(fleet, since_ns, well), passed
            yield found
            passed = time.monotonic() - began
            due = _due(pace, beat, passed)
            if due is None:
                return
            beat = round(due / pace.every_s)
            await asyncio.sleep(max(0.0, due - (time.monotonic() - began)))


def _due(pace: Pace, beat: int, passed_s: float) -> float | None:
    """Return when the next round begins, in seconds since the first, or None if the recording is over."""
    due = max(beat + 1, int(passed_s // pace.every_s) + 1) * pace.every_s
    return None if pace.for_s is not None and due > pace.for_s + 1e-9 else due


def new_recording(out: Path, hosts: Sequence[Host], pace: Pace) -> Run:
    """Create the run folder of a recording.

    Raises:
        EvidenceError: The folder cannot be created.
    """
    manifest: dict[str, object] = {
        "kind": KIND,
        "title": f"cells {', '.join(host.name for host in hosts)}"[:200],
        "cells": [host.name for host in hosts],
        "every_s": pace.every_s,
    }
    return new_run(out.parent, out.name, manifest, name=out.name)


def save_round(run: Run, index: int, collection: Collection) -> int:
    """Write one round into the run, and return its number of rows."""
    from dbdyno import _core

    block = Block(
        index=index,
        kind="measure",
        started_ns=min(column.asked_ns for column in collection.columns),
        ended_ns=max(c.asked_ns + round(c.seconds * 1e9) for c in collection.columns),
        rows=len(collection.readings),
        slices=[],
        marks=[f"{c.host.name}: {c.problem}" for c in collection.failed],
        report={
            "cells": {
                c.host.name: {
                    "readings": len(c.readings),
                    "started_ns": c.started_ns,
                    "seconds": c.seconds,
                    "problem": c.problem,
                }
                for c in collection.columns
            },
            "alerts": collection.alerts,
        },
    )
    rows = _core.write_metrics(run.path / "metrics", block.name, columns_of(collection, index))
    run.add_block(block)
    return rows


def record(out: Path, hosts: Sequence[Host], access: Access, pace: Pace, on_round: Any = None) -> Run:
    """Record until the time is over; if the user interrupts the recording, the run is marked as aborted."""
    run = new_recording(out, hosts, pace)
    names = CellNames()
    first = configuration.query_configuration(hosts, access)
    names.learn(first)
    _save(run, hosts, names, first=first)

    async def work() -> None:
        index = 0
        async for collection in rounds(hosts, access, pace, alerts=True, names=names):
            if names.names_of(hosts) != run.manifest.cells:  # a cell reported its name only now
                _save(run, hosts, names, first=first)
            rows = save_round(run, index, collection)
            if on_round:
                on_round(index, rows, collection)
            index += 1

    try:
        asyncio.run(work())
    except BaseException:
        with contextlib.suppress(OSError):
            run.save(status="aborted", ended="interrupted")
        raise
    _save(run, hosts, names, first=first, last=configuration.query_configuration(hosts, access))
    run.save(status="complete", ended="the time is over")
    return run


def _save(run: Run, hosts: Sequence[Host], names: CellNames, **facts: configuration.FactsOf) -> None:
    """Write the cells' configurations and names into the manifest."""
    known = {end: {names.name_of(host): own for host, own in found.items()} for end, found in facts.items()}
    run.save(cells=names.names_of(hosts), addresses=names.addresses, configuration=known)


def columns_of(collection: Collection, block: int, arm: str = "") -> dict[str, list[Any]]:
    """Return a collection's rows for the table `metrics`, as one list per column."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("arm", "block", "source", "object_type", "object", "metric", "at_ns", "value", "unit", "kind")
    }
    for column in collection.columns:
        for reading in column.readings:
            known = metric(reading.name)
            at_ns = column.asked_ns if reading.at_ns is None else reading.at_ns
            row = (
                arm,
                block,
                f"{PREFIX}{column.host.name}",
                known.object_type,
                reading.object,
                reading.name,
                at_ns,
                reading.value,
                reading.unit,
                known.kind,
            )
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
    return columns


def _no_metrics(run: Run) -> CellsError:
    return CellsError(
        "contains no metrics of cells",
        where=str(run.path),
        next_step="make such a run with `dbdyno cells record` or `dbdyno cells import`",
    )


def recorded_round(run: Run, *, last: bool = True) -> Collection:
    """Return the last (or first) round of a recording as a collection.

    For a cell without values in that round, the nearest round in which the cell has values is used.

    Raises:
        CellsError: The run contains no metrics of cells.
    """
    from dbdyno.evidence.query import connect

    connection, _ = connect(run)
    order = "desc" if last else "asc"
    with connection:
        rows = connection.execute(
            "select source, metric, object, value, unit, at_ns, block from metrics"  # noqa: S608
            " where source like 'cell:%' qualify block = first_value(block) over"
            f" (partition by source order by block {order}) order by source, metric, object"
        ).fetchall()
    if not rows:
        raise _no_metrics(run)
    columns: dict[str, Column] = {}
    began, known = _began(run), recorded_names(run.manifest)
    for source, name, item, value, unit, at_ns, block in rows:
        cell = _cell(source, known)
        if not cell:
            continue
        if cell not in columns:
            columns[cell] = _read_back(cell, int(at_ns), began.get((int(block), cell)))
        column = columns[cell]
        text = repr(value)
        column.listing.readings.append(Reading(cell, name, item, value, unit, text, 0, int(at_ns)))
    silent = [_silent(run, cell) for cell in cells_of(run) if cell not in columns]
    return Collection([*columns.values(), *silent])


def cells_of(run: Run) -> list[str]:
    """Return the names of all queried cells, each once, whether or not they ever answered."""
    known = recorded_names(run.manifest)
    called = {way: name for name, ways in (run.manifest.addresses or {}).items() for way in ways}
    told = (cell for block in run.blocks() for cell in block.report.get("cells", {}))
    names = (called.get(cell, known.get(cell, cell)) for cell in (*run.manifest.cells, *told))
    return list(dict.fromkeys(name for name in names if name))


def reports_of(run: Run, blocks: Sequence[Block], cell: str) -> Iterator[JsonObject]:
    """Yield each round's report on a cell, which is recorded under its address until it reports its name."""
    known = recorded_names(run.manifest)
    ways = [cell, *(run.manifest.addresses or {}).get(cell, ()), *(way for way, own in known.items() if own == cell)]
    for block in blocks:
        said = block.report.get("cells", {})
        yield next((said[way] for way in ways if way in said), {})


def _silent(run: Run, cell: str) -> Column:
    """Return the column of a cell that returned nothing in any round."""
    told = [problem for said in reports_of(run, run.blocks(), cell) if (problem := said.get("problem"))]
    why = f": {told[-1]}" if told else ""
    return Column(Host(cell, cell), Listing(), 0, 0.0, f"returned nothing in any round{why}")


def _cell(source: str, known: Mapping[str, str]) -> str:
    """Return the cell of a row; empty if the recording also has this cell under another name."""
    cell = str(source).removeprefix(PREFIX)
    return known.get(cell, cell)


def all_rounds(run: Run) -> list[Collection]:
    """Return every complete round of a recording, oldest first.

    Raises:
        CellsError: The recording has no complete round.
    """
    from dbdyno.evidence.query import connect

    connection, _ = connect(run)
    with connection:
        rows = connection.execute(
            "select block, source, metric, object, value, unit, at_ns from metrics"
            " where source like 'cell:%' order by block, source"
        ).fetchall()
    if not rows:
        raise _no_metrics(run)
    rounds: dict[int, dict[str, Column]] = {}
    began, known = _began(run), recorded_names(run.manifest)
    for block, source, name, item, value, unit, at_ns in rows:
        cell = _cell(source, known)
        if not cell:
            continue
        columns = rounds.setdefault(int(block), {})
        if cell not in columns:
            columns[cell] = _read_back(cell, int(at_ns), began.get((int(block), cell)))
        column = columns[cell]
        column.readings.append(Reading(cell, name, item, value, unit, repr(value), 0, int(at_ns)))
    return [Collection(list(columns.values())) for _, columns in sorted(rounds.items())]


def _began(run: Run) -> dict[tuple[int, str], int]:
    """Return the start of each cell's service as the cell reported it [ns since 1970], by (block, cell)."""
    known = recorded_names(run.manifest)
    return {
        (block.index, known.get(cell, cell)): int(said["started_ns"])
        for block in run.blocks()
        for cell, said in block.report.get("cells", {}).items()
        if said.get("started_ns")
    }


def _read_back(cell: str, at_ns: int, began_ns: int | None) -> Column:
    listing = Listing(started_ns={} if began_ns is None else {cell: began_ns})
    return Column(Host(cell, cell), listing, at_ns, 0.0)
