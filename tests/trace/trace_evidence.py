"""Evidence of a trace, built directly: what an import would write, without any reader.

    made = Evidence()
    made.statement("a1", "select 1 from dual")
    made.call("exec", "a1", end_us=1_000, elapsed_us=400, cpu_us=100)
    made.wait("log file sync", "commit", end_us=2_000, elapsed_us=500)
    made.write(tmp_path / "run")

Times are microseconds after 2026-11-21 10:00:00 UTC. Rows are numbered as they are added, which is
the order of the file: children before parents, waits before their call.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.evidence.trace_tables import TABLES

START_NS = 1_795_255_200_000_000_000
_TYPES = {
    "varchar": pa.string(),
    "bigint": pa.int64(),
    "ubigint": pa.uint64(),
    "uinteger": pa.uint32(),
    "utinyint": pa.uint8(),
    "boolean": pa.bool_(),
}


class Evidence:
    """Rows by table; `write` writes the folder."""

    def __init__(self, arm: str = "") -> None:
        self.arm = arm
        self.rows: dict[str, list[TableRow]] = {table: [] for table in TABLES}
        self.numbers = 0
        self.spans: dict[int, list[int]] = {}
        self.numbered: dict[int, tuple[JsonObject, str]] = {}
        self.rows["contexts"].append({"context": 0, "module": "app", "service": "shop"})

    def statement(self, key: str, text: str, **more: Any) -> None:
        """Add a statement; its text with literals replaced by `:n` is the force-matching text."""
        folded = re.sub(r"\b\d+\b|'[^']*'", ":n", text.upper())
        given = {
            "statement": key,
            "sqlid": key,
            "text": text,
            "length": len(text),
            "user_id": 100,
            "depth": 0,
            "first_file": 0,
            "first_line": 20,
            "force_match": folded,
            "force_key": hashlib.md5(folded.encode()).hexdigest()[:16],
            "command": 3,
        }
        self.rows["statements"].append(given | more)

    def call(
        self,
        kind: str,
        statement: str,
        *,
        end_us: int,
        elapsed_us: int,
        cpu_us: int = 0,
        depth: int = 0,
        session: int = 0,
        parent: int | None = None,
        self_us: int | None = None,
        self_cpu_us: int | None = None,
        wait_us: int = 0,
        **more: Any,
    ) -> int:
        """Add a call; return its number. `adopt` can set `parent` later."""
        number, place = self._place(session, end_us, elapsed_us)
        given = {
            "call": number,
            "kind": kind,
            "statement": statement,
            "elapsed_ns": elapsed_us * 1000,
            "cpu_ns": cpu_us * 1000,
            "rows": 0,
            "physical_reads": 0,
            "consistent_reads": 0,
            "current_reads": 0,
            "misses": 0,
            "depth": depth,
            "parent": parent,
            "self_elapsed_ns": (elapsed_us if self_us is None else self_us) * 1000,
            "self_cpu_ns": (cpu_us if self_cpu_us is None else self_cpu_us) * 1000,
            "self_wait_ns": wait_us * 1000,
            "self_physical_reads": 0,
            "self_consistent_reads": 0,
            "self_current_reads": 0,
            "orphan": False,
            "user_id": 100,
        }
        self._keep("calls", number, "parent", given | place | more)
        return number

    def wait(
        self,
        event: str,
        class_: str,
        *,
        end_us: int,
        elapsed_us: int,
        statement: str = "unknown:0",
        call: int | None = None,
        session: int = 0,
        **more: Any,
    ) -> int:
        """Add a wait; return its number."""
        number, place = self._place(session, end_us, elapsed_us)
        given = {
            "wait": number,
            "event": event,
            "class": class_,
            "elapsed_ns": elapsed_us * 1000,
            "p1": 1,
            "p2": 2,
            "p3": 3,
            "parameters": "file#,block#,blocks",
            "object_id": -1,
            "statement": statement,
            "call": call,
            "think": False,
            "fidelity": "exact",
        }
        self._keep("waits", number, "call", given | place | more)
        return number

    def adopt(self, parent: int, *children: int) -> None:
        """Set a call as the parent of other calls and of waits."""
        for child in children:
            row, key = self.numbered[child]
            row[key] = parent

    def _keep(self, table: str, number: int, key: str, row: TableRow) -> None:
        """Append a row, and note which of its keys names its call."""
        self.rows[table].append(row)
        self.numbered[number] = (row, key)

    def _place(self, session: int, end_us: int, elapsed_us: int) -> tuple[int, JsonObject]:
        self.numbers += 1
        number = (session << 40) | self.numbers
        span = self.spans.setdefault(session, [end_us - elapsed_us, end_us])
        span[0], span[1] = min(span[0], end_us - elapsed_us), max(span[1], end_us)
        return number, {
            "arm": self.arm,
            "block": session,
            "session": session,
            "file": session,
            "started_ns": START_NS + (end_us - elapsed_us) * 1000,
            "tim": end_us,
            "cursor": 7,
            "context": 0,
            "line": 20 + self.numbers,
            "byte_offset": 100 * self.numbers,
        }

    def write(self, folder: Path, *, title: str = "", manifest: bool = True) -> Path:
        """Writes the folder as an import does."""
        folder.mkdir(parents=True)
        files = []
        for session, (first, last) in sorted(self.spans.items()):
            name = f"orcl_ora_{4000 + session}.trc"
            files.append(
                {
                    "file": session,
                    "path": name,
                    "bytes": 1000,
                    "lines": 50,
                    "level": "8",
                    "facts": {"version": "19.4.0.0.0"},
                }
            )
            self.rows["sessions"].append(
                {
                    "session": session,
                    "file": session,
                    "name": f"{session}.1",
                    "first_tim": first,
                    "last_tim": last,
                    "started_ns": START_NS + first * 1000,
                    "elapsed_ns": (last - first) * 1000,
                    "calls": sum(r["session"] == session for r in self.rows["calls"]),
                    "waits": sum(r["session"] == session for r in self.rows["waits"]),
                }
            )
        self.rows["files"] = [{k: f[k] for k in ("file", "path", "bytes", "lines")} for f in files]
        for table, rows in self.rows.items():
            if table in ("calls", "waits", "links"):
                if rows:
                    (folder / table).mkdir()
                    _write(rows, table, folder / table / "f000000-000000.parquet")
            elif rows:
                _write(rows, table, folder / f"{table}.parquet")
        if manifest:
            text = {
                "schema": 1,
                "kind": "trace",
                "format": "oracle 10046",
                "status": "complete",
                "title": title,
                "started_at": "2026-11-21T10:00:00+00:00",
                "tool_version": "0.1.0",
                "files": files,
                "totals": {},
                "options": {},
            }
            (folder / "manifest.json").write_text(json.dumps(text))
        return folder


def _write(rows: list[TableRow], table: str, path: Path) -> None:
    columns = [column.split() for column in TABLES[table].split(", ")]
    arrays = {}
    for name, kind in columns:
        array = pa.array([row.get(name) for row in rows], type=_TYPES[kind])
        is_dictionary = name in ("arm", "kind", "event", "class", "statement", "parameters")
        arrays[name] = array.dictionary_encode() if is_dictionary else array
    pq.write_table(pa.table(arrays), path)


def order_entry(sessions: int = 1, orders: int = 4, factor: float = 1.0, seed: int = 1) -> Evidence:
    """Return sessions that place orders: an insert with a recursive lookup, a commit, then a wait for the client.

    `factor` multiplies the waits for the commit, and `seed` determines their noise.
    """
    dice = random.Random(seed)
    made = Evidence()
    made.statement("ins", "insert into orders values (:1, :2)", command=2)
    made.statement("seq", "select seq# from seq$ where obj#=:1", user_id=0, depth=1)
    for number in range(3):
        made.statement(f"lit{number}", f"select * from items where id = {number}")
    for session in range(sessions):
        t = session * 50
        call, wait = (partial(one, session=session) for one in (made.call, made.wait))
        for order in range(orders):
            t += 2_000
            read = wait("db file sequential read", "data read", end_us=t + 150, elapsed_us=100, statement="seq")
            own = {"cpu_us": 40, "wait_us": 100, "self_consistent_reads": 3}
            inner = call("fetch", "seq", end_us=t + 180, elapsed_us=150, depth=1, user_id=0, rows=1, **own)
            made.adopt(inner, read)
            own = {"cpu_us": 140, "self_us": 150, "self_cpu_us": 100, "self_current_reads": 5}
            outer = call(
                "exec", "ins", end_us=t + 300, elapsed_us=300, rows=1, consistent_reads=3, current_reads=5, **own
            )
            made.adopt(outer, inner)
            sync = round(factor * 500 * dice.lognormvariate(0, 0.2))
            wait("log file sync", "commit", end_us=t + 310 + sync, elapsed_us=sync)
            key = f"lit{order % 3}"
            call("parse", key, end_us=t + 400 + sync, elapsed_us=50, cpu_us=50, misses=1)
            call("exec", key, end_us=t + 450 + sync, elapsed_us=20, cpu_us=10)
            wait("SQL*Net message from client", "network", end_us=t + 1_500 + sync, elapsed_us=1_000, statement=key)
            t += sync
        for at, (operation, parent, rows) in enumerate(
            [("LOAD TABLE CONVENTIONAL ORDERS", 0, 0), ("SEQUENCE ORDER_SEQ", 1, 1)], 1
        ):
            made.rows["plans"].append(
                {
                    "file": session,
                    "line": 9_000 + at,
                    "session": session,
                    "cursor": 7,
                    "statement": "ins",
                    "id": at,
                    "parent": parent,
                    "position": 1,
                    "rows": rows,
                    "operation": operation,
                    "cr": 3,
                    "pr": 0,
                    "pw": 0,
                    "starts": 1,
                    "time_us": 200 // at,
                    "plan_hash": 0,
                    "object_id": 0,
                }
            )
    return made
