"""What a comparison of periods reads on PostgreSQL: pg_stat_statements and pg_stat_user_tables."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from dbdyno.snapshot.causes.change import Change, Key, Rates, rates
from dbdyno.snapshot.causes.postgres.missing_indexes import full_scan
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.host import describe_processors, processors_of_intervals
from dbdyno.snapshot.engines.postgres.section_helpers import JIT_TIMES, column_or_null
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.renumbered_statements import fingerprints, renumbered_identifiers
from dbdyno.snapshot.reading.statement_texts import statement_texts

HALF = 0.5
CROWDED_SHARE = 0.75
"""Smallest share of a host's processors used by other programs that is reported."""


class PostgresChange(Change):
    """Two periods of a PostgreSQL server.

    A statement's key is its queryid; a table's key is (datid, relid).
    """

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
    renumbered: frozenset[Key] = frozenset()
    """Identifiers of statements whose identifier changed between the periods."""

    def read_statements(self, interval: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Return the rates by queryid, and add the texts to `texts`.

        Statements inside functions are counted in the statements that called the functions.
        """
        view = self.view
        if not interval.has(view):
            return {}
        has = interval.columns(view)
        time = next(name for name, _ in self.times if name in has)
        top = "and toplevel is not false" if "toplevel" in has else ""
        rows = interval.query(
            f"select queryid, sum(calls) as calls, sum({time}) as ms, sum(rows) as rows,"
            f" sum(shared_blks_hit + shared_blks_read) as work, sum(shared_blks_read) as reads,"
            f" sum(temp_blks_written) as temp, sum({column_or_null('wal_bytes', has)}) as wal,"
            f" sum({column_or_null('temp_blk_read_time', has)}"
            f" + {column_or_null('temp_blk_write_time', has)}) as temp_ms,"
            f" sum({_sum_of([f'jit_{interval}_time' for interval in JIT_TIMES], has)}) as jit,"
            f" sum({column_or_null('parallel_workers_to_launch', has)}) as planned,"
            f" sum({column_or_null('parallel_workers_launched', has)}) as launched"
            f" from {view} where verdict in ('ok', 'evicted') and calls > 0 {top} group by 1",
            view,
        )
        texts |= {int(key): text for key, text in statement_texts(interval).items()}
        return {int(row.pop("queryid")): rates(row, interval.seconds) for row in rows}

    def merge_renumbered(self, sides: Sequence[dict[Key, Rates]]) -> None:
        """Merge in place the rates of statements that continue with the same text under a new identifier.

        Their table was recreated, or the server was upgraded. A statement that is still called, but less than half as
        often, counts as replaced too, because the second period may begin one sub-interval too early.
        """
        before, after = sides
        stay = (n for n, one in after.items() if n not in before or one["calls"] >= HALF * before[n].get("calls", 0.0))
        moved = renumbered_identifiers(map(str, before), map(str, stay), fingerprints(self.before, self.after))
        for one, other in moved.items():
            for side in (side for side in sides if int(one) in side):
                kept = side.setdefault(int(other), {})
                for name, value in side.pop(int(one)).items():
                    kept[name] = kept.get(name, 0.0) + value
        self.renumbered = frozenset(map(int, moved.values()))

    def read_tables(self, interval: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Return the rates of the counters by table, and add the names to `names`.

        Live and dead rows are not rates but the numbers at the end of the interval.
        """
        view = "pg_stat_user_tables"
        if not interval.has(view):
            return {}
        found: dict[Hashable, Rates] = {}
        for row in interval.query(f"select * from {view} where verdict = 'ok'", view):
            key = (int(row["datid"]), int(row["relid"]))
            schema = row["schemaname"]
            names[key] = row["relname"] if schema == "public" else f"{schema}.{row['relname']}"
            counted = {c.name for c in interval.counters(view)}
            states = {n: float(v) for n, v in row.items() if n in ("n_live_tup", "n_dead_tup") and v is not None}
            found[key] = rates({n: v for n, v in row.items() if n in counted}, interval.seconds) | states
        return found

    def missing_index(self, statement: Key) -> tuple[str, str] | None:
        """Return in words what a new statement does for lack of an index, and the evidence: scans, blocks, indexes."""
        return full_scan(self, statement)

    def is_ours(self, text: str) -> bool:
        """Return True if a statement has dbdyno's mark."""
        return is_ours(text)

    def remarks(self) -> list[str]:
        """Return remarks on a host that other programs also used heavily, and on statements compared by their texts.

        On a shared host, times depend on the other programs as well as on the server.
        """
        known, found = processors_of_intervals(self.before, self.after), []
        if known is not None and max(one.others for one in known) >= CROWDED_SHARE * known[1].cores:
            found.append(f"other processes used the host: {describe_processors(*known)}")
        count = len(self.renumbered & self.statements.keys())
        if count:
            whose = "1 statement has" if count == 1 else f"{count} statements have"
            found.append(
                f"{whose} another identifier than before but the same text: a table was recreated, or the server's "
                "version changed; they are matched by their text"
            )
        return found


def _sum_of(names: Sequence[str], has: set[str]) -> str:
    """Return an SQL expression that adds up those of the named columns that exist."""
    return " + ".join(name for name in names if name in has) or "null::double"
