"""Rules on the work of a transaction: a missing or unused index, a table that grew, more rows or blocks.

PostgreSQL counts full scans and rows by table; MariaDB counts rows by index and rows without one
(`Handler_read_rnd_next`). The reads of a table are compared using the counters that the server has.
"""

from __future__ import annotations

from dbdyno.study.analysis.explanation.formatting import number, plain_name
from dbdyno.study.analysis.explanation.objects import ObjectCounters
from dbdyno.study.analysis.explanation.pair import Pair, Reason, ratio_of

MORE = 1.3
"""Ratio of blocks or rows above which a transaction does different work."""
READ_NS, ROW_NS = 50_000, 200
"""Longest time [ns] to read a block from the page cache, and to read a row in a scan.

Additional blocks or rows can be the cause of a difference only if, at these times, they explain a tenth of it.
"""
PLAUSIBLE = 0.1
GROWN = 1.05
"""Ratio of live rows above which a table is said to have grown.

Live rows are counted roughly (a load and a vacuum in one session count twice). It is sufficient if either the live rows
or the inserted rows show growth; the rows read per scan must confirm it.
"""
ROWS_LEAST = 50.0
"""Smallest number of additional rows read per transaction that counts as different work."""
SCANS_LEAST = 0.05
"""Smallest number of scans of a table per transaction that is reported."""
UNUSED = 0.01
"""An index is unused in an arm if the arm reads less than this share of the rows that the other arm reads with it."""
SCANNED = "by full scan (Handler_read_rnd_next)"
"""Description of how MariaDB reads rows for which it uses no index."""


def index_reason(pair: Pair) -> Reason | None:
    """Return a reason if only the faster arm had and used an index, and the slower one scans the table instead."""
    for name, slow, fast in _tables(pair) if _other_work(pair) else []:
        fewer = 0 < slow.last.get("indexes", 0.0) + 1 <= fast.last.get("indexes", 0.0) + 0.01
        gone = _missing_index(pair, name)
        if not fewer or not _scanned_more(slow, fast, gone):
            continue
        what = f"index {gone} on {plain_name(name)}" if gone else f"an index on {plain_name(name)}"
        words = f"{what} is not there with {pair.slow}: {_by_scan(slow, fast)}"
        return Reason("index", gone or plain_name(name), words, _read(pair, name, slow, fast))
    return None


def growth_reason(pair: Pair) -> Reason | None:
    """Return a reason if a table has more rows and is scanned about as often in both arms."""
    for name, slow, fast in _tables(pair) if _other_work(pair) else []:
        live = slow.last.get("n_live_tup", 0.0), fast.last.get("n_live_tup", 0.0)
        scans = _scans(slow) + slow.per.get("idx_scan", 0.0), _scans(fast) + fast.per.get("idx_scan", 0.0)
        grown = max(ratio_of(*live), ratio_of(slow.net_rows, fast.net_rows)) >= GROWN
        if live[1] < 100 or not grown or not 0.7 <= ratio_of(_scans(slow), _scans(fast)) <= 1.4:
            continue
        a_scan = [_rows(one) / times for one, times in zip((slow, fast), scans, strict=True) if times]
        if len(a_scan) < 2 or ratio_of(a_scan[0], a_scan[1]) < MORE:
            continue
        return Reason(
            "growth",
            plain_name(name),
            f"table {plain_name(name)} grew: a scan reads {number(a_scan[0])} rows with {pair.slow} instead of"
            f" {number(a_scan[1])}, with the same number of scans",
            _read(pair, name, slow, fast),
        )
    return None


def plan_reason(pair: Pair) -> Reason | None:
    """Return a reason if a table with the same indexes is accessed by a different plan."""
    for name, slow, fast in _tables(pair) if _other_work(pair) else []:
        gone = _missing_index(pair, name)
        scanned = _scanned_more(slow, fast, gone)
        by_index = fast.per.get("idx_scan", 0.0) - slow.per.get("idx_scan", 0.0)
        if not scanned and by_index < SCANS_LEAST and not (gone and "rows_by_index" in fast.per):
            continue
        words = f"{plain_name(name)} is read by another plan with {pair.slow}, with the same indexes"
        told = [f"index {gone} is not used"] if gone else []
        told += [_by_scan(slow, fast)] if scanned else _by_other(pair, name)
        if told:
            words += f": {', '.join(told)}"
        return Reason("plan", plain_name(name), words, _read(pair, name, slow, fast))
    return None


def work_reason(pair: Pair) -> Reason | None:
    """Return a reason if the slower arm does more work, and no single table explains it."""
    if not _other_work(pair):
        return None
    assert pair.counts is not None
    rows, blocks, scanned = (pair.values(name) for name in ("rows_read", "blocks", "rows_scanned"))
    said = [f"{number(blocks[0])} blocks instead of {number(blocks[1])}"] if blocks else []
    said += [f"{number(rows[0])} rows read instead of {number(rows[1])}"] if rows else []
    if scanned and scanned[0] - scanned[1] >= ROWS_LEAST:
        said += [f"of these {number(scanned[0])} instead of {number(scanned[1])} {SCANNED}"]
    place = pair.counts[0].sources("rows_read", "blocks_asked", "blocks_hit")
    return Reason("work", "work", f"a transaction does more work with {pair.slow}: {', '.join(said)}", (place,))


def _other_work(pair: Pair) -> bool:
    """Return True if a transaction of the slower arm touches more blocks or reads more rows."""
    rows, blocks = pair.values("rows_read"), pair.values("blocks")
    least = max(ROWS_LEAST, PLAUSIBLE * pair.amount_ns / ROW_NS)
    if rows is not None and ratio_of(*rows) >= MORE and rows[0] - rows[1] >= least:
        return True
    least = max(2.0, PLAUSIBLE * pair.amount_ns / READ_NS)
    return blocks is not None and ratio_of(*blocks) >= MORE and blocks[0] - blocks[1] >= least


def _tables(pair: Pair) -> list[tuple[str, ObjectCounters, ObjectCounters]]:
    """Return the tables of which many more rows are read, the largest increase first."""
    if pair.counts is None:
        return []
    slow, fast = (one.tables for one in pair.counts)
    nothing = ObjectCounters()
    grown = [(name, one, fast.get(name, nothing)) for name, one in slow.items()]
    ranked = sorted(grown, key=lambda row: -(_rows(row[1]) - _rows(row[2])))
    return [row for row in ranked if _rows(row[1]) - _rows(row[2]) >= ROWS_LEAST]


def _rows(counters: ObjectCounters) -> float:
    return sum(
        counters.per.get(name, 0.0) for name in ("seq_tup_read", "idx_tup_fetch", "rows_scanned", "rows_by_index")
    )


def _scans(counters: ObjectCounters) -> float:
    return counters.per.get("seq_scan", 0.0)


def _scanned_more(slow: ObjectCounters, fast: ObjectCounters, gone: str) -> bool:
    """Return True if the slower arm scans the whole table more often.

    The number of rows alone does not distinguish more scans from a larger table: if scans are not counted, the faster
    arm must have an index that the slower one does not use (`gone`).
    """
    rows = slow.per.get("rows_scanned", 0.0) - fast.per.get("rows_scanned", 0.0)
    return _scans(slow) - _scans(fast) >= SCANS_LEAST or (gone != "" and rows >= ROWS_LEAST)


def _by_scan(slow: ObjectCounters, fast: ObjectCounters) -> str:
    if "rows_scanned" in slow.per:
        rows = slow.per["rows_scanned"], fast.per.get("rows_scanned", 0.0)
        return f"a transaction reads {number(rows[0])} rows {SCANNED} instead of {number(rows[1])}"
    return f"the whole table is scanned {number(_scans(slow))} times per transaction instead of {number(_scans(fast))}"


def _missing_index(pair: Pair, table: str) -> str:
    """Return the index that the faster arm used most and the slower arm did not use; empty if there is none."""
    assert pair.counts is not None
    slow, fast = (one.indexes for one in pair.counts)
    own = [
        (_use_of(each), name)
        for name, each in fast.items()
        if name.startswith(f"{table}/") and _use_of(slow.get(name, ObjectCounters())) <= UNUSED * _use_of(each)
    ]
    used = [one for one in own if one[0] >= SCANS_LEAST]
    return max(used)[1].rpartition("/")[2] if used else ""


def _by_other(pair: Pair, table: str) -> list[str]:
    """Return a text on how many rows the slower arm reads by another index, if rows are counted by index."""
    assert pair.counts is not None
    slow, fast = (one.indexes for one in pair.counts)
    more = {
        name: rows
        for name, each in slow.items()
        if name.startswith(f"{table}/") and (rows := each.per.get("rows_by_index", 0.0)) >= ROWS_LEAST
    }
    other = max(more, key=lambda name: more[name], default="")
    if not other:
        return []
    before = number(fast.get(other, ObjectCounters()).per.get("rows_by_index", 0.0))
    return [f"a transaction reads {number(more[other])} rows by index {other.rpartition('/')[2]} instead of {before}"]


def _use_of(counters: ObjectCounters) -> float:
    """Return how often an index was scanned, or how many rows were read by it."""
    return counters.per.get("idx_scan", counters.per.get("rows_by_index", 0.0))


def _read(pair: Pair, name: str, slow: ObjectCounters, fast: ObjectCounters) -> tuple[str, ...]:
    rows = f"{plain_name(name)}, per transaction: {number(_rows(slow))} rows read instead of {number(_rows(fast))}, "
    if pair.counts is not None and "rows_by_index" in slow.per:
        by = slow.per["rows_by_index"], fast.per.get("rows_by_index", 0.0)
        place = pair.counts[0].sources("tables")
        return (f"{rows}of these {number(by[0])} by an index instead of {number(by[1])} ({place})",)
    scans = slow.per.get("idx_scan", 0.0), fast.per.get("idx_scan", 0.0)
    return (f"{rows}{number(scans[0])} index scans instead of {number(scans[1])} (metrics: pg_stat_user_tables)",)
