"""Cost of a job to the source, per session: exact where the server counts it, sampled where it does not.

    blocks      fetched, and found in the buffers, of every relation that the session locked; exact, from the server's
                transaction counters (`pg_stat_get_xact_blocks_*`, any version, no privilege needed)
    log, temp   exact from PostgreSQL 18 on, which counts them per session; unknown before
    CPU, bytes  of the session's process, if the server runs on this host (/proc); up to the last sample before its end
    waits       sampled every `LOOK_S` seconds: a share of samples, not a duration

The figures go into the job's ledger, one row per session.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.usage import Usage, read_usage
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.nouns import with_noun

LOOK_S = 0.2
BY_SESSION_SINCE = 180000
COST_SQL = """
copy (select json_build_object('blocks_fetched', coalesce(sum(pg_stat_get_xact_blocks_fetched(l.relation)), 0),
    'blocks_hit', coalesce(sum(pg_stat_get_xact_blocks_hit(l.relation)), 0){})
from pg_catalog.pg_locks l where l.pid = pg_backend_pid() and l.locktype = 'relation') to stdout
"""
LATER_SQL = """, 'log_bytes', (select wal_bytes from pg_stat_get_backend_wal(pg_backend_pid())),
    'temp_writes', (select coalesce(sum(writes), 0) from pg_stat_get_backend_io(pg_backend_pid())
                    where object = 'temp relation')"""
ACTIVITY_SQL = """
select pid, coalesce(wait_event_type || ':' || wait_event, 'CPU') from pg_catalog.pg_stat_activity
where application_name = %s and state = 'active' and pid <> pg_backend_pid()
"""


def cost_sql(server_version: int) -> str:
    """Return the statement that reports a session's cost so far as one line of JSON."""
    return COST_SQL.format(LATER_SQL if server_version >= BY_SESSION_SINCE else "").strip()


Row = JsonObject
"""Cost of a session: `process`, `worker`, `chunks`, `rows`, `bytes`, `busy_ns`, `looks`, `waits`, engine counters."""


@dataclass
class CostSampler:
    """Sampler of a job's sessions, through the connection that holds the job's snapshot."""

    conn: psycopg.Connection[Any]
    name: str
    is_here: bool
    waits: dict[int, Counter[str]] = field(default_factory=dict)
    last: Usage = field(default_factory=dict)
    looked: float = 0.0

    @classmethod
    def for_job(cls, target: Postgres, conn: psycopg.Connection[Any], name: str) -> CostSampler:
        """Return a sampler of the sessions with this application name."""
        return cls(conn, name, not target.pooled and target.is_here(conn))

    def sample(self) -> None:
        """Take a sample, unless the last one is less than `LOOK_S` seconds old."""
        if time.monotonic() - self.looked < LOOK_S:
            return
        self.looked = time.monotonic()
        # Within a transaction the server repeats its first view of the activity until it is told to discard it.
        self.conn.execute("select pg_stat_clear_snapshot()")
        for pid, event in self.conn.execute(ACTIVITY_SQL, [self.name]).fetchall():
            self.waits.setdefault(pid, Counter())[event] += 1
        if self.is_here:
            self.last |= read_usage(Path("/proc", str(pid)) for pid in self.waits)

    def sessions(self, chunks: Iterable[MoveFinishedChunk]) -> list[Row]:
        """Return one row per session, computed from the chunks that it finished."""
        rows = session_costs(chunks)
        for pid, row in rows.items():
            waits = self.waits.get(pid, Counter())
            row |= {"looks": waits.total(), "waits": dict(waits.most_common())}
            place = Path("/proc", str(pid))
            if place in self.last:
                # The process served no other client before: all that it used since its start belongs to the job.
                row["cpu_ns"] = self.last[place].get("on_cpu_ns", 0)
                row["storage_bytes"] = self.last[place].get("read_bytes", 0)
        return [rows[pid] for pid in sorted(rows)]


def session_costs(chunks: Iterable[MoveFinishedChunk]) -> dict[int, Row]:
    """Return what each session did, by process id; the server's counters are those after its last chunk."""
    rows: dict[int, Row] = {}
    for one in chunks:
        row = rows.setdefault(
            one["process"],
            {"process": one["process"], "worker": one["worker"], "chunks": 0, "rows": 0, "bytes": 0, "busy_ns": 0},
        )
        row["chunks"] += 1
        row["rows"] += one["rows"]
        row["bytes"] += one["copy_bytes"]
        row["busy_ns"] += one["elapsed_ns"]
        row.update(_counters(one.get("cost")))
    return rows


def _counters(line: str | None) -> dict[str, int]:
    """Return the counters in a line of JSON; values that are not whole numbers are left out."""
    try:
        found = json.loads(line or "{}")
    except ValueError:
        return {}
    return {str(name): int(value) for name, value in (found or {}).items() if str(value).isdigit()}


def sentence(sessions: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the cost of all sessions together as a sentence, or None if there are no sessions."""
    rows = list(sessions)
    if not rows:
        return None
    if all("rows_read" in row and "blocks_fetched" not in row for row in rows):
        read, sent = (sum(row.get(name, 0) for row in rows) for name in ("rows_read", "bytes_sent"))
        return f"Cost to the source: {with_noun(read, 'row')} read by its handlers; {sent:,} bytes sent."
    fetched = sum(row.get("blocks_fetched", 0) for row in rows)
    missed = fetched - sum(row.get("blocks_hit", 0) for row in rows)
    told = any("blocks_fetched" in row for row in rows)
    parts = [f"{with_noun(fetched, 'block')} read, {missed:,} of them not in the buffers"] if told else []
    if all("cpu_ns" in row for row in rows):
        parts.append(f"at least {sum(row['cpu_ns'] for row in rows) / 1e9:.3g} s of CPU")
    if all("log_bytes" in row for row in rows):
        parts.append(f"{sum(row['log_bytes'] for row in rows):,} bytes of log")
    looks = sum(row["looks"] for row in rows)
    waits: Counter[str] = Counter()
    for row in rows:
        waits.update(row["waits"])
    if looks:
        most = ", ".join(f"{name} {count / looks:.0%}" for name, count in waits.most_common(3))
        parts.append(f"of {with_noun(looks, 'look')} at its sessions: {most}")
    return f"Cost to the source: {'; '.join(parts)}." if parts else None
