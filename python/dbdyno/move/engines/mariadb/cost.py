"""What a job costs a MariaDB: each session's own counters, which the server keeps for every session.

rows_read    rows that its handlers read
bytes_sent   bytes that it sent
created_tmp_disk_tables   temporary tables that did not fit in memory
"""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.base.core_types import MoveDone
from dbdyno.move.proof.cost import Row, by_session


def sessions_of(done: Iterable[MoveDone]) -> list[Row]:
    """A row for each session, from the chunks that it finished; nobody looked at its waits."""
    found = by_session(done)
    return [{"looks": 0, "waits": {}, **found[process]} for process in sorted(found)]
