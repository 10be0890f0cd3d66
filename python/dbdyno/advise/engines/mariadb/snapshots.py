"""Evidence of an interval of snapshots of MariaDB: counters are differences between its two ends.

Snapshots have status, settings, statements by digest and files. They have no definitions of indexes, no sizes of
tables, no column statistics and no sampled sessions: rules that need these are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.engines.mariadb.queries import DATA_FILES
from dbdyno.advise.engines.mariadb.read import version_number
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import PLACES, Column, Database, Index, Key, Load, Server, Session, Setting, Table
from dbdyno.advise.placement import Segment
from dbdyno.base.json_types import TableRow
from dbdyno.snapshot.engines.mariadb.texts import OWN_STATEMENT
from dbdyno.snapshot.engines.mariadb.views import OTHER_DIGEST, STATEMENTS
from dbdyno.snapshot.reading.interval import Interval

_FILES = "file_summary_by_event_name"
_ASK = MissingEvidence("snapshots do not contain this", "run `dbdyno advise mariadb://...` on the server itself")
_FROM_SERVER = frozenset((Table, Index, Column, Key, Load, Session, Segment))


def facts_of(interval: Interval) -> Facts:
    """Return the evidence of an interval."""
    rows: dict[type, Sequence[Any]] = {
        Server: [_server(interval)],
        Status: [_status(interval)],
        Setting: _settings(interval),
    }
    lacking: dict[type, MissingEvidence] = {}
    readers: tuple[tuple[type, str, Callable[[Interval], Sequence[Any]]], ...] = (
        (Digest, STATEMENTS.name, _digests),
        (FileIo, _FILES, _files),
    )
    for kind, view, reader in readers:
        if interval.has(view):
            rows[kind] = reader(interval)
        else:
            why, step = interval.missing_reason(view) or ("not in the snapshots", None)
            lacking[kind] = MissingEvidence(f"{view}: {why}", step or "")
    rows[Database] = [_database(interval, rows.get(FileIo, ()))]
    for other in PLACES.keys() - rows.keys() - lacking.keys():
        known = other in _FROM_SERVER
        lacking[other] = (
            MissingEvidence(f"{PLACES[other]}: {_ASK.why}", _ASK.next) if known else MissingEvidence("MariaDB has none")
        )
    numbers = f"snapshots {interval.before.number} to {interval.after.number}"
    title = f"{interval.after.target}, {numbers}"
    return Facts(title, "snapshots", rows, lacking, f"{interval.seconds:,.0f} s between {numbers}")


def _server(interval: Interval) -> Server:
    facts = interval.after.facts
    version = str(facts.get("version") or "")
    return Server(
        "mariadb",
        version,
        version_number(version),
        bool(facts.get("read_only")),
        at_us=facts.get("at_us"),
        started_us=facts.get("started_us"),
        role=str(facts.get("role") or ""),
    )


def _status(interval: Interval) -> Status:
    """Return the counters of the interval, and the state values at its end."""
    counts = interval.query("select name, value from global_status where value is not null", "global_status")
    states = interval.query(f"select name, value from {interval.ends('global_status_now')[1]} where value is not null")
    return Status({str(one["name"]): round(one["value"]) for one in (*counts, *states)}, interval.seconds)


def _settings(interval: Interval) -> list[Setting]:
    from dbdyno.bench.mariadb.server import shown_value

    found = interval.query(f"select name, value from {interval.ends('global_variables')[1]}")
    return [Setting(str(one["name"]), shown_value(str(one["name"]), str(one["value"] or ""))) for one in found]


def _digests(interval: Interval) -> list[Digest]:
    rows = interval.query(
        """select DIGEST as identifier, sum(COUNT_STAR) as calls, sum(SUM_TIMER_WAIT) / 1e6 as ms,
          sum(SUM_ROWS_EXAMINED) as examined, sum(SUM_ROWS_SENT) as sent,
          sum(SUM_CREATED_TMP_TABLES) as temp_tables, sum(SUM_CREATED_TMP_DISK_TABLES) as temp_disk_tables,
          sum(SUM_NO_INDEX_USED) as without_index
        from events_statements_summary_by_digest where verdict = 'ok' and COUNT_STAR > 0 group by 1 order by 3 desc""",
        STATEMENTS.name,
    )
    texts: dict[str, str] = {}
    if interval.after.file("statement_texts") is not None:
        for one in interval.query(f"select DIGEST as digest, query from {interval.ends('statement_texts')[1]}"):
            texts[str(one["digest"])] = one["query"] or ""
    found = [Digest(**{**row, "text": texts.get(str(row["identifier"]), "")}) for row in map(_whole, rows)]
    return [one for one in found if one.identifier == OTHER_DIGEST or not OWN_STATEMENT.search(one.text)]


def _files(interval: Interval) -> list[FileIo]:
    rows = interval.query(
        """select EVENT_NAME as event, COUNT_READ as reads, SUM_TIMER_READ / 1e6 as read_ms,
          (SUM_TIMER_READ + SUM_TIMER_WRITE + SUM_TIMER_MISC) / 1e6 as ms
        from file_summary_by_event_name where verdict = 'ok'""",
        _FILES,
    )
    return [FileIo(**row) for row in map(_whole, rows)]


def _database(interval: Interval, files: Sequence[FileIo]) -> Database:
    """Return one row for all schemas: reads of data files and their time, which is None if file I/O was not counted."""
    found = next((one for one in files if one.event == DATA_FILES), None)
    reads, read_ms = (found.reads, found.read_ms) if found else (0, None)
    return Database("all", reads, 0, read_ms, 0, 0, 0, None, None, None, None, interval.seconds, True)


def _whole(row: Mapping[str, Any]) -> TableRow:
    """Return a row with counts as int: sums in the database are wider than 64 bits and arrive as decimals."""
    return {
        name: value if isinstance(value, str | float) or value is None else int(value) for name, value in row.items()
    }
