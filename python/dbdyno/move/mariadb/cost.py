"""What a job costs a MariaDB: each session's own counters, which the server keeps for every session.

rows_read    rows that its handlers read
bytes_sent   bytes that it sent
created_tmp_disk_tables   temporary tables that did not fit in memory
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def sessions_of(done: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each session, from the chunks that it finished; counters are those after its last one."""
    found: dict[int, dict[str, Any]] = {}
    for one in done:
        row = found.setdefault(
            one["process"],
            {"process": one["process"], "worker": one["worker"], "chunks": 0, "rows": 0, "bytes": 0, "busy_ns": 0},
        )
        row["chunks"] += 1
        row["rows"] += one["rows"]
        row["bytes"] += one["copy_bytes"]
        row["busy_ns"] += one["elapsed_ns"]
        row |= {"looks": 0, "waits": {}, **_counters(one.get("cost"))}
    return [found[number] for number in sorted(found)]


def _counters(line: str | None) -> dict[str, int]:
    try:
        given = json.loads(line or "{}")
    except ValueError:
        return {}
    return {str(name): int(value) for name, value in (given or {}).items() if str(value).isdigit()}
