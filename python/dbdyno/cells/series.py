"""A complete recording as time series: the change of every metric of every cell from each collection to the next.

The computation is that of `rates`, but in SQL over all rounds at once, because an hour of a full rack is a million
values. A difference never crosses a restart of the cell's service: where it restarted, or one of its counters fell, a
new epoch of that cell begins. If a cell has not collected again, there is no step, not even one of zero: the next step
then starts at the last collection. A round without an answer is treated in the same way.

A step is (from, to, numerator, denominator): difference over seconds, time over requests, part over whole, a gauge over
1. The mean over steps is therefore one sum divided by another, for rates and latencies alike.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import CellsError
from dbdyno.cells.catalogue import FAMILIES, metric, request_counters, rule
from dbdyno.cells.clocks import Clock, clocks_of
from dbdyno.cells.identity import recorded_names
from dbdyno.cells.kinds import kind_of
from dbdyno.cells.record import cells_of

if TYPE_CHECKING:
    import duckdb

    from dbdyno.evidence.run import Run

Step = tuple[int, int, float, float]
"""A step: its start and end on the cell's clock [ns since 1970], its numerator, and its denominator."""
RATE, LATENCY, SHARE, GAUGE = "rate", "latency", "share", "gauge"
SHARES = {
    "flash first": ("FL", ("FL_FLASH_FIRST",), ("FL_DISK_FIRST", "FL_FLASH_FIRST")),
    "hits": ("FC", ("FC_IO_RQ_R",), ("FC_IO_RQ_R", "FC_IO_RQ_R_MISS")),
}
"""Shares of counters by name: family, the counters of the part, and the counters of the total."""
SHARE_WORDS = {
    "flash first": "redo writes that were safe on flash first, of all that the flash log served",
    "hits": "read requests answered from the flash cache, of those and the misses",
}
_WITH_REQUESTS = (
    "steps s join requests q on s.metric = q.time and q.cell = s.cell and q.object = s.object and q.block = s.block"
)
"""SQL join of the steps of time counters, each with the difference of the number of requests."""
_TIMES = {"us": 1e3, "ms": 1e6}
_UNITS = {"IO requests": "1/s", "": "1/s", "MB": "MB/s", "KB": "KB/s"}


@dataclass
class Measure:
    """One quantity of one family, with its steps by cell.

    `unit` is a unit of `dbdyno.page` (1/s, MB/s, ns, ratio), or for a gauge the unit that cells print. `added` is True
    if the values of cells are added up; otherwise their steps are pooled (latencies, shares) or shown side by side
    (percentages, loads).
    """

    name: str
    family: str
    kind: str
    unit: str
    meaning: str
    added: bool
    cells: dict[str, list[Step]] = field(default_factory=dict)

    def mean(self, cell: str) -> float | None:
        """Return the mean of a cell over the recording, or None without steps or requests."""
        return _pooled_ratio(self.cells.get(cell, ()))

    def overall(self) -> float | None:
        """Return the value for all cells together, or None if no single number is correct."""
        if self.kind in (LATENCY, SHARE):
            return _pooled_ratio([step for own in self.cells.values() for step in own])
        known = [mean for cell in self.cells if (mean := self.mean(cell)) is not None]
        return math.fsum(known) if self.added and known else None

    def total(self, cell: str) -> float:
        """Return the sum of the numerators, which is the total increase of a counter."""
        return math.fsum(step[2] for step in self.cells.get(cell, ()))

    @property
    def is_nonzero(self) -> bool:
        """Return True if any value differs from zero."""
        return any(step[2] for own in self.cells.values() for step in own)


@dataclass
class MeasuredRecording:
    """Recording with its measures by (family, name), and its cells in order, including those that never answered.

    Times are those of this machine's clock: if a cell's clock is wrong, its times are shifted as `clocks` says.
    """

    run: Run
    cells: list[str]
    began_ns: int
    ended_ns: int
    measures: dict[tuple[str, str], Measure]
    connection: duckdb.DuckDBPyConnection
    clocks: dict[str, Clock] = field(default_factory=dict)

    def family(self, name: str) -> list[Measure]:
        """Return the measures of a family, in order of their names."""
        return [m for (family, _), m in sorted(self.measures.items()) if family == name]

    def families(self) -> list[str]:
        """Return all families in the order of a report: flash first, then disks, then the rest."""
        found = dict.fromkeys(family for family, _ in self.measures)
        return sorted(found, key=lambda name: (_rank(name), name))

    def get(self, family: str, name: str) -> Measure | None:
        """Return one measure, or None if the recording does not have it."""
        return self.measures.get((family, name))

    @property
    def intervals(self) -> int:
        """Return the largest number of steps of any cell."""
        found = self.connection.execute(
            "select max(n) from (select count(distinct block) as n from steps group by cell)"
        ).fetchone()
        return int(found[0] or 0) if found else 0

    def objects(self) -> list[tuple[str, str, str, str, float, float, float]]:
        """Return (family, metric, cell, object, difference, seconds, requests) of every counter in the recording.

        Requests are 0 if the counter is not a time of requests.
        """
        return self.connection.execute(
            "select s.family, s.metric, s.cell, s.object, sum(s.value - s.old),"  # noqa: S608
            " sum(s.at_ns - s.from_ns) / 1e9, coalesce(sum(q.n), 0)"
            f" from {_WITH_REQUESTS.replace('join', 'left join')} where s.kind = 'counter'"
            " group by all order by all"
        ).fetchall()

    def siblings(self) -> dict[tuple[str, str, str], dict[int, float]]:
        """Return rates and latencies by (metric, kind, object) and round; `skew` compares objects of one kind."""
        rate = "sum((s.value - s.old) * 1e9 / (s.at_ns - s.from_ns))"
        time = "sum(s.value - s.old) / nullif(sum(q.n), 0)"
        disks = "where s.family like '%disks%'"
        found: dict[tuple[str, str, str], dict[int, float]] = {}
        counters = "from (select * from steps where kind = 'counter' and metric not in (select time from pairs)) s"
        for name, value, source in (("s.metric", rate, counters), ("q.latency", time, f"from {_WITH_REQUESTS}")):
            for kind, who, which in (("'cells'", "s.cell", ""), ("s.family", "s.cell || ' ' || s.object", disks)):
                rows = self.connection.execute(
                    "select name, kind, who, list(block), list(number) from (select"  # noqa: S608
                    f" {name} as name, {kind} as kind, {who} as who, s.block as block, {value} as"
                    f" number {source} {which} group by all) where number is not null group by all"
                ).fetchall()
                for metric_name, own, sibling, blocks, values in rows:
                    key = metric_name, own, sibling
                    found[key] = dict(zip(blocks, values, strict=True))
        return found


@contextlib.contextmanager
def open_series(run: Run) -> Iterator[MeasuredRecording]:
    """Open a recording, and close it on exit.

    Raises:
        CellsError: The run contains no metrics of cells.
    """
    from dbdyno.evidence.query import connect

    connection, _ = connect(run)
    with connection:
        clocks = _prepare(connection, run)
        if clocks is None:
            raise _nothing(run)
        found = connection.execute("select min(at_ns), max(at_ns) from readings").fetchone()
        began_ns, ended_ns = found or (0, 0)
        rows = connection.execute("select distinct cell from readings order by cell").fetchall()
        cells = list(dict.fromkeys([*cells_of(run), *(str(cell) for (cell,) in rows)]))
        measures = {(m.family, m.name): m for m in _measures(connection)}
        yield MeasuredRecording(run, cells, int(began_ns), int(ended_ns), measures, connection, clocks)


def family_of(name: str, item: str, cell: str = "") -> str:
    """Return the family of an object's metric: disks by kind, grid disks by group, others by the name's first part."""
    head = name.partition("_")[0]
    if head in ("CD", "GD"):
        return kind_of(name, item, cell)
    return {"IORM": "cell"}.get(head, FAMILIES.get(head, head))


def _rank(family: str) -> int:
    order = (
        "flash log",
        "flash cache",
        "hard disks",
        "flash disks",
        "grid disks",
        "smart I/O",
        "database",
        "pluggable database",
        "consumer group",
        "category",
        "network",
    )
    head = "grid disks" if family.startswith("grid disks") else family
    return order.index(head) if head in order else len(order)


def _nothing(run: Run) -> CellsError:
    """Return the error for a recording without metrics, with the most frequent reason in its rounds."""
    problems = Counter(
        f"{cell}: {said['problem']}"
        for block in run.blocks()
        for cell, said in block.report.get("cells", {}).items()
        if said.get("problem")
    )
    why = f"; {problems.most_common(1)[0][0]}" if problems else ""
    return CellsError(
        f"contains no metrics of cells{why}",
        where=str(run.path),
        next_step="make such a run with `dbdyno cells record` or `dbdyno cells import`",
    )


def _readings(connection: duckdb.DuckDBPyConnection, run: Run) -> dict[str, Clock]:
    """Create the table of all readings, with each cell once under its own name, and times on this machine's clock."""
    connection.execute(
        "create temp table readings as select block, source[6:] as cell, metric, object, value,"
        " at_ns, unit, kind from metrics where source like 'cell:%'"
    )
    for column, name in recorded_names(run.manifest).items():
        change = "update readings set cell = $2 where cell = $1" if name else "delete from readings where cell = $1"
        connection.execute(change, [column, name] if name else [column])
    times: dict[str, dict[int, int]] = {}
    for cell, block, at_ns in connection.execute(
        "select cell, block, max(at_ns) from readings group by all order by block"
    ).fetchall():
        times.setdefault(str(cell), {})[int(block)] = int(at_ns)
    clocks = clocks_of({block.index: block.started_ns for block in run.blocks()}, times)
    for cell, clock in clocks.items():
        if clock.ahead_s:
            ahead_ns = round(clock.ahead_s * 1e9)
            connection.execute("update readings set at_ns = at_ns - $1 where cell = $2", [ahead_ns, cell])
    return clocks


def _prepare(connection: duckdb.DuckDBPyConnection, run: Run) -> dict[str, Clock] | None:
    """Create the tables of a recording, such as `steps`, and return each cell's clock, or None without readings."""
    tables = {row[0] for row in connection.execute("show tables").fetchall()}
    if "metrics" not in tables:
        return None
    clocks = _readings(connection, run)
    names = connection.execute("select distinct metric, object, cell from readings").fetchall()
    if not names:
        return None
    family = [family_of(*row) for row in names]
    _table(
        connection,
        "names",
        {"metric": "varchar", "object": "varchar", "cell": "varchar", "family": "varchar"},
        [(*row, own) for row, own in zip(names, family, strict=True)],
    )
    counters = {name for name, *_ in names if metric(name).kind == "counter"}
    pairs = [
        (f"{name}_RQ", name, one, len(request_counters(f"{name}_RQ")))
        for name in sorted(counters)
        for one in request_counters(f"{name}_RQ")
    ]
    _table(
        connection,
        "pairs",
        {"latency": "varchar", "time": "varchar", "counter": "varchar", "counters": "bigint"},
        pairs,
    )
    _table(connection, "began", {"cell": "varchar", "block": "uinteger"}, restarts(run))
    connection.execute(
        "create temp table resets as select cell, block, any_value(metric) as metric from (select"
        " cell, block, metric, value < lag(value) over (partition by cell, metric, object order by"
        " block) as less from readings where kind = 'counter') where less group by all"
        " union all by name select cell, block from began"
    )
    connection.execute(
        "create temp table steps as with fell as (select distinct cell, block from resets),"
        " epochs as (select r.cell, r.block, count(fell.block) over (partition by r.cell order by"
        " r.block) as epoch from (select distinct cell, block from readings) r left join fell"
        " using (cell, block)), all_steps as (select r.*, n.family, lag(r.value) over own as old,"
        " lag(r.at_ns) over own as from_ns from readings r join epochs using (cell, block) join"
        " names n using (metric, object, cell) window own as (partition by r.cell, r.metric,"
        " r.object, epoch order by r.block)) select * from all_steps where from_ns < at_ns"
    )
    connection.execute(
        "create temp table requests as select p.latency, p.time, s.cell, s.object, s.block,"
        " sum(s.value - s.old) as n from steps s join pairs p on s.metric = p.counter group by all"
        " having count(*) = any_value(p.counters)"
    )
    return clocks


def _table(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: dict[str, str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    lists = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    parts = ", ".join(f"unnest(${at}::{kind}[]) as {column}" for at, (column, kind) in enumerate(columns.items(), 1))
    connection.execute(f"create temp table {name} as select {parts}", lists)


def restarts(run: Run) -> list[tuple[str, int]]:
    """Return (cell, block) of the first round after each restart of a cell's service, as far as cells report it."""
    last: dict[str, int] = {}
    found = []
    known = recorded_names(run.manifest)
    for block in run.blocks():
        for column, told in block.report.get("cells", {}).items():
            cell = known.get(column, column)
            began = told.get("started_ns")
            if began is None:
                continue
            if last.get(cell, began) != began:
                found.append((cell, block.index))
            last[cell] = began
    return found


def _measures(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    yield from _rates(connection)
    yield from _latencies(connection)
    yield from _shares(connection)
    yield from _gauges(connection)


def _gather(rows: Sequence[tuple[Any, ...]]) -> dict[tuple[str, str], dict[str, list[Step]]]:
    found: dict[tuple[str, str], dict[str, list[Step]]] = {}
    for family, name, cell, *step in rows:
        found.setdefault((family, name), {}).setdefault(cell, []).append(
            (int(step[0]), int(step[1]), float(step[2]), float(step[3]))
        )
    return found


def _rates(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Yield differences per second, summed over a cell's objects, except for times of requests."""
    rows = connection.execute(
        "select family, metric, cell, min(from_ns), max(at_ns), sum(value - old),"
        " (max(at_ns) - min(from_ns)) / 1e9 from steps where kind = 'counter' and metric not in"
        " (select time from pairs) group by family, metric, cell, block order by block"
    ).fetchall()
    for (family, name), cells in _gather(rows).items():
        known = metric(name)
        unit = _UNITS.get(known.unit, f"{known.unit}/s")
        yield Measure(name, family, RATE, unit, known.meaning, True, cells)


def _latencies(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Yield the time per request over all objects of a cell: the sum of times divided by the sum of requests."""
    rows = connection.execute(
        "select s.family, q.latency, s.cell, min(s.from_ns), max(s.at_ns), sum(s.value - s.old),"  # noqa: S608
        f" sum(q.n) from {_WITH_REQUESTS} group by s.family, q.latency, s.cell, s.block"
        " order by s.block"
    ).fetchall()
    for (family, name), cells in _gather(rows).items():
        scale = _TIMES.get(metric(name.removesuffix("_RQ")).unit, 1e3)
        scaled = {cell: [(a, b, time * scale, requests) for a, b, time, requests in own] for cell, own in cells.items()}
        yield Measure(name, family, LATENCY, "ns", metric(name).meaning, False, scaled)


def _shares(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Yield the shares in `SHARES` whose counters are all recorded for a family."""
    for name, (head, parts, whole) in SHARES.items():
        rows = connection.execute(
            "select family, $1, cell, min(from_ns), max(at_ns),"
            " sum(case when list_contains($2, metric) then value - old else 0 end),"
            " sum(value - old) from steps where list_contains($3, metric)"
            " group by family, cell, block having count(distinct metric) = len($3) order by block",
            [name, list(parts), list(whole)],
        ).fetchall()
        for (family, _), cells in _gather(rows).items():
            assert family == FAMILIES[head]
            yield Measure(name, family, SHARE, "ratio", SHARE_WORDS[name], False, cells)


def _gauges(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    """Yield gauges, and rates without a counter: summed over a cell's objects if allowed, else their mean."""
    rows = connection.execute(
        "select family, metric, cell, min(from_ns), max(at_ns), sum(value), avg(value),"
        " any_value(unit) from steps where kind = 'gauge' or (kind = 'rate' and not exists (select"
        " 1 from readings c where c.kind = 'counter' and c.metric = regexp_replace(steps.metric,"
        " '_(SEC|MIN|RQ)$', ''))) group by family, metric, cell, block order by block"
    ).fetchall()
    units: dict[str, str] = {}
    chosen = []
    for family, name, cell, begin, end, total, mean, unit in rows:
        units.setdefault(name, metric(name).unit or unit or "")
        value = total if rule(name, units[name]) == "sum" else mean
        chosen.append((family, name, cell, begin, end, value, 1.0))
    for (family, name), cells in _gather(chosen).items():
        unit = units[name].replace("MB/sec", "MB/s").replace("IO/sec", "1/s")
        added = rule(name, units[name]) == "sum"
        yield Measure(name, family, GAUGE, unit, metric(name).meaning, added, cells)


def _pooled_ratio(steps: Sequence[Step]) -> float | None:
    """Return the sum of the numerators divided by that of the denominators, or None if the latter is zero."""
    below = math.fsum(step[3] for step in steps)
    return math.fsum(step[2] for step in steps) / below if below else None
