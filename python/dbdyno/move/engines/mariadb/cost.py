"""Cost of a job to a MariaDB server, from the status counters that the server keeps per session.

rows_read    rows read by the storage engine's handlers
bytes_sent   bytes sent to the client
created_tmp_disk_tables   temporary tables that did not fit in memory
"""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.move.proof.cost import Row, session_costs


def sessions_of(chunks: Iterable[MoveFinishedChunk]) -> list[Row]:
    """Return one row per session with the counters of its finished chunks; waits are not sampled on MariaDB."""
    found = session_costs(chunks)
    return [{"looks": 0, "waits": {}, **found[process]} for process in sorted(found)]
