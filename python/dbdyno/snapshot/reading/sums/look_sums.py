"""Sums over the looks of one hour, which an interval that covers the hour reads instead of the samples.

    activity.looks.parquet    how often each kind of session was in each state, by statement and event
    activity.minutes.parquet  how often each wait event was seen in each minute
    activity.parts.parquet    how often active sessions were seen in each sub-interval, by event, database and user
    activity.names.parquet    how often each statement, user ... was active, by event, and its sessions
    activity.longest.parquet  the longest open transactions
    activity.horizons.parquet the transactions that held back vacuum

They are beside the other files of the hour (`chunk.py`). How often something was seen is the sum of the weights of its
rows (`samples.SEEN`), in millionths of a look. All but the first and the last two are of active sessions
without dbdyno's own. An hour whose samples have times outside of it has none of these files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.reading.difference import union_columns
from dbdyno.snapshot.sessions.active import (
    MINUTE_US,
    STATEMENT_TYPES,
    TRANSACTIONS_KEPT,
    active_rows,
    horizon_holders,
    longest_transactions,
    other_rows,
)
from dbdyno.snapshot.sessions.samples import SEEN, activity_columns
from dbdyno.snapshot.store.parquet import write_query

if TYPE_CHECKING:
    import duckdb

    from dbdyno.snapshot.reading.sums.indexed_snapshots import IndexedSnapshot

LOOKS, MINUTES, PARTS, NAMES, LONGEST, HORIZONS = (
    f"activity.{one}" for one in ("looks", "minutes", "parts", "names", "longest", "horizons")
)
NAME_COLUMNS = {
    "statement": "statement",
    "user": "usename",
    "database": "datname",
    "application": "application",
    "client": "client",
}
"""Dimensions in the file `NAMES`, with their columns.

A row of the file has a dimension, a name, and either an event with how often it was seen, or a session.
"""


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour, for the functions that build SQL conditions on samples: all samples of the hour are inside it."""

    own_sessions: list[int]
    inside: str = "true"


def write_look_sums(
    connection: duckdb.DuckDBPyConnection, chain: Sequence[IndexedSnapshot], parts: Sequence[JsonObject], folder: Path
) -> bool:
    """Write the sums of an hour's samples, which are in `folder`, and return True if they were written.

    `chain` begins with the snapshot before the hour; `parts` are its sub-intervals.
    """
    engine = chain[0].engine
    samples = folder / "activity.parquet"
    if engine not in STATEMENT_TYPES or not samples.is_file():
        return False
    source = (
        f"(from {union_columns(activity_columns(STATEMENT_TYPES[engine]))} union all by name from {_file(samples)})"
    )
    low, high = (one.at_ns // 1000 for one in (chain[0], chain[-1]))
    strays = connection.execute(
        f"select count(*) from {source} where (at_us > {low} and at_us <= {high}) is not true"
    ).fetchone()
    if strays is None or strays[0]:
        return False
    hour = Hour(sorted({one.own_session for one in chain if one.own_session is not None}))
    active = f"(from {source} where {active_rows(hour)})"
    seen = f"sum({SEEN})::bigint as seen"
    minute = f"at_us // {MINUTE_US} * {MINUTE_US} as at_us"
    queries = {
        LOOKS: f"select kind, state, statement, event_type, event, ({other_rows(hour)}) is true as theirs,"
        f" {seen} from {source} group by all order by all",
        MINUTES: f"select {minute}, event_type, event, {seen} from {active} group by all order by all",
        PARTS: _by_part(active, parts),
        NAMES: _by_name(active),
        LONGEST: longest_transactions(hour, source, 0, TRANSACTIONS_KEPT),
        HORIZONS: horizon_holders(hour, source, TRANSACTIONS_KEPT),
    }
    for name, query in queries.items():
        write_query(connection, query, folder / f"{name}.parquet")
    return True


def _file(path: Path) -> str:
    return f"read_parquet({literal(str(path))})"


def _by_part(active: str, parts: Sequence[JsonObject]) -> str:
    """Return the query of `PARTS`; `bits` has a bit set for each column (event, database, user) that is summed over."""
    ends = ", ".join(f"({one['number']}, {one['at_us']}, {one['elapsed_ns'] // 1000})" for one in parts)
    return f"""select part, grouping(event, datname, usename) as bits, event_type, event, datname, usename,
          sum({SEEN})::bigint as seen
        from {active} s asof join (from (values {ends}) p(part, until_us, elapsed_us)) p on s.at_us <= p.until_us
        where s.at_us > p.until_us - p.elapsed_us
        group by grouping sets ((part, event_type, event), (part, datname), (part, usename)) order by all"""


def _by_name(active: str) -> str:
    columns = [*NAME_COLUMNS.values(), "event", "session"]
    bits = {name: 1 << at for at, name in enumerate(reversed(columns))}
    every = sum(bits.values())
    dimension = " ".join(
        f"when {every - bits[column] - bits[by]} then '{name}'"
        for name, column in NAME_COLUMNS.items()
        for by in ("event", "session")
    )
    value = " ".join(f"when '{name}' then {column}::varchar" for name, column in NAME_COLUMNS.items())
    sets = ", ".join(f"({column}, event_type, event), ({column}, session)" for column in NAME_COLUMNS.values())
    return f"""select dimension, case dimension {value} end as name, event_type, event, session, seen
        from (
          select case grouping({", ".join(columns)}) {dimension} end as dimension, {", ".join(NAME_COLUMNS.values())},
            event_type, event, session, sum({SEEN})::bigint as seen
          from {active} group by grouping sets ({sets}))
        order by all"""
