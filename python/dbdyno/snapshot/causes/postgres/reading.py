"""How a change of PostgreSQL is read: pg_stat_statements and pg_stat_user_tables."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from dbdyno.snapshot.causes.change import Change, Key, Rates, rates
from dbdyno.snapshot.causes.postgres.missing_indexes import read_whole
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.host import of_stretches, used
from dbdyno.snapshot.engines.postgres.parts import JIT_TIMES, present
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.renumbered_statements import fingerprints, renumbered

HALF = 0.5
CROWDED = 0.75
"""Of a host's processors, used by others, to say so."""


class PostgresChange(Change):
    """Two stretches of a PostgreSQL server. A table's key is its database and its number."""

    view = "pg_stat_statements"
    times = (("total_exec_time", 1.0), ("total_time", 1.0))
    calls = "calls"
    work = "blocks"
    work_sql = "shared_blks_hit + shared_blks_read"
    sleep = re.compile(r"\bpg_sleep(?:_for|_until)?\s*\(", re.I)
    settings_view = ("pg_settings", "setting")
    jumps = (
        ("pg_stat_database", "sessions", "true", "sessions begun"),
        ("pg_stat_bgwriter", "checkpoints_req", "true", "checkpoints asked for"),
        ("pg_stat_checkpointer", "num_requested", "true", "checkpoints asked for"),
        ("pg_stat_wal", "wal_sync_time", "true", "ms of WAL syncs"),
        ("pg_stat_io", "fsync_time", "object = 'wal'", "ms of WAL syncs"),
    )
    jitter_us = 0
    renumbered: frozenset[Key] = frozenset()
    """Statements that have another identifier than before."""

    def read_statements(self, one: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Rates by queryid; statements inside of functions are in those that called them."""
        view = self.view
        if not one.has(view):
            return {}
        has = one.columns(view)
        time = next(name for name, _ in self.times if name in has)
        top = "and toplevel is not false" if "toplevel" in has else ""
        rows = one.query(
            f"select queryid, sum(calls) as calls, sum({time}) as ms, sum(rows) as rows,"
            f" sum(shared_blks_hit + shared_blks_read) as work, sum(shared_blks_read) as reads,"
            f" sum(temp_blks_written) as temp, sum({present('wal_bytes', has)}) as wal,"
            f" sum({present('temp_blk_read_time', has)} + {present('temp_blk_write_time', has)}) as temp_ms,"
            f" sum({_sum_of([f'jit_{one}_time' for one in JIT_TIMES], has)}) as jit,"
            f" sum({present('parallel_workers_to_launch', has)}) as planned,"
            f" sum({present('parallel_workers_launched', has)}) as launched"
            f" from {view} where verdict in ('ok', 'evicted') and calls > 0 {top} group by 1",
            view,
        )
        if one.after.file("statement_texts") is not None:
            for row in one.query(f"select queryid, query from {one.ends('statement_texts')[1]}"):
                texts[int(row["queryid"])] = row["query"] or ""
        return {int(row.pop("queryid")): rates(row, one.seconds) for row in rows}

    def go_on(self, sides: Sequence[dict[Key, Rates]]) -> None:
        """Those of the same text: their table was made anew, or the server upgraded. One that is called half as often
        went, too: a cut may lie one sub-interval too early."""
        before, after = sides
        stay = (n for n, one in after.items() if n not in before or one["calls"] >= HALF * before[n].get("calls", 0.0))
        moved = renumbered(map(str, before), map(str, stay), fingerprints(self.before, self.after))
        for one, other in moved.items():
            for side in (side for side in sides if int(one) in side):
                kept = side.setdefault(int(other), {})
                for name, value in side.pop(int(one)).items():
                    kept[name] = kept.get(name, 0.0) + value
        self.renumbered = frozenset(map(int, moved.values()))

    def read_tables(self, one: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Rates of the counters; of live and dead rows the state at the end."""
        view = "pg_stat_user_tables"
        if not one.has(view):
            return {}
        found: dict[Hashable, Rates] = {}
        for row in one.query(f"select * from {view} where verdict = 'ok'", view):
            key = (int(row["datid"]), int(row["relid"]))
            schema = row["schemaname"]
            names[key] = row["relname"] if schema == "public" else f"{schema}.{row['relname']}"
            counted = {c.name for c in one.counters(view)}
            states = {n: float(v) for n, v in row.items() if n in ("n_live_tup", "n_dead_tup") and v is not None}
            found[key] = rates({n: v for n, v in row.items() if n in counted}, one.seconds) | states
        return found

    def without_index(self, statement: Key) -> tuple[str, str] | None:
        """By scans of the tables that it names, its blocks, and the indexes there are."""
        return read_whole(self, statement)

    def is_ours(self, text: str) -> bool:
        """Whether a statement is marked as ours."""
        return is_ours(text)

    def remarks(self) -> list[str]:
        """That others had most of the host, where they had: then times are theirs as well as the server's. That
        statements were compared by their texts."""
        known, found = of_stretches(self.before, self.after), []
        if known is not None and max(one.others for one in known) >= CROWDED * known[1].cores:
            found.append(f"the host was not the server's alone: {used(*known)}")
        count = len(self.renumbered & self.statements.keys())
        if count:
            whose = "1 statement has" if count == 1 else f"{count} statements have"
            found.append(
                f"{whose} another identifier than before, and the same text: a table was made anew, or the server is"
                " another version; before and after are compared by the text"
            )
        return found


def _sum_of(names: Sequence[str], has: set[str]) -> str:
    """The columns that there are, added up, as SQL."""
    return " + ".join(name for name in names if name in has) or "null::double"
