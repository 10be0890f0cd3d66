"""Report sections on the throughput of each database and on the load profile, per second and per transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import Part, Row, Table, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import column_or_null, missing_timing, own_transactions, setting
from dbdyno.snapshot.engines.shared_sections import load_profile, needs

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_THROUGHPUT = columns(
    "database:text tps:per_s hitrate:ratio lio_ps:per_s rd_ps:per_s rows_ps:per_s ins_ps:per_s"
    " upd_ps:per_s del_ps:per_s"
)
_MORE = columns(
    "database:text rollbk_ps:per_s returned:count:rows_returned fetched:count:rows_fetched aas:aas"
    " idle_in_tx:aas:idle_in_tx temp_files temp_bytes:bytes deadlocks conflicts"
    " io_read:ns:read_time io_write:ns:write_time"
)
_SESSIONS = columns(
    "database:text sessions abandoned fatal killed total:ns:in_sessions active:ns idle:ns:idle_in_transaction"
    " planned:count:parallel_workers_planned launched:count:launched checksum_failures checksum_last_failure:time"
)


@needs("pg_stat_database", name="throughput", title="Database throughput")
def throughput(interval: Interval, top: int) -> Part:
    """Return the section DATABASE THROUGHPUT, named as in dbdyno's predecessor, with more facts on each database."""
    rows = _rows(interval)
    return section(
        "throughput",
        "Database throughput",
        [table("", _THROUGHPUT, rows), table("Further, by database", _MORE, rows), _sessions(interval, rows)],
        about="tps: commits per second, except dbdyno's. hitrate: blks_hit / (blks_hit + blks_read)."
        " lio_ps: blocks requested; rd_ps: those not found in shared buffers. rows_ps: tup_returned"
        " + tup_fetched. aas: active_time per elapsed time, average active sessions. Sessions"
        " are counted when they begin; abandoned: the client was lost; fatal: a fatal error; killed: by an operator.",
        not_measured=[
            missing_timing(interval, "time of reads and writes"),
            None
            if "active_time" in interval.columns("pg_stat_database")
            else missing_measurement(
                "active sessions by database",
                "this version has no active_time",
                "PostgreSQL 14 or later; or sample: dbdyno snap watch",
            ),
        ],
        notes=_boundaries(interval),
    )


def _rows(interval: Interval) -> list[Row]:
    view = "pg_stat_database"
    s = f"{interval.seconds!r}"
    has = interval.columns(view)
    timed = setting(interval, "track_io_timing") == "on"
    own = own_transactions(interval)
    interval.table(view)
    interval.connection.execute("create or replace temp table own (datname varchar, n bigint)")
    if own:
        interval.connection.executemany("insert into own values (?, ?)", list(own.items()))
    theirs = "case when xact_commit >= own.n then xact_commit - own.n else xact_commit end"
    return interval.query(
        f"""select coalesce(d.datname, '(shared)') as database,
          {theirs} / {s} as tps, {theirs} as commits, xact_rollback as rollbacks,
          xact_rollback / {s} as rollbk_ps,
          blks_hit / nullif(blks_hit + blks_read, 0) as hitrate,
          (blks_hit + blks_read) / {s} as lio_ps, blks_read / {s} as rd_ps,
          (tup_returned + tup_fetched) / {s} as rows_ps, tup_returned as returned, tup_fetched as fetched,
          tup_inserted / {s} as ins_ps, tup_updated / {s} as upd_ps, tup_deleted / {s} as del_ps,
          {column_or_null("sessions", has)} as sessions,
          {column_or_null("active_time", has)} / 1e3 / {s} as aas,
          {column_or_null("idle_in_transaction_time", has)} / 1e3 / {s} as idle_in_tx,
          {", ".join(f"{column_or_null(name, has)}{times} as {word}" for word, (name, times) in _OF_SESSIONS.items())},
          temp_files, temp_bytes, deadlocks, conflicts,
          {"blk_read_time * 1e6" if timed else "null"} as io_read,
          {"blk_write_time * 1e6" if timed else "null"} as io_write,
          verdict, why
        from {view} d left join own on own.datname = d.datname
        where verdict <> 'ok' or blks_hit + blks_read + xact_commit + xact_rollback > 0
        order by tps desc nulls last, database"""
    )


_OF_SESSIONS = {
    "abandoned": ("sessions_abandoned", ""),
    "fatal": ("sessions_fatal", ""),
    "killed": ("sessions_killed", ""),
    "total": ("session_time", " * 1e6"),
    "active": ("active_time", " * 1e6"),
    "idle": ("idle_in_transaction_time", " * 1e6"),
    "planned": ("parallel_workers_to_launch", ""),
    "launched": ("parallel_workers_launched", ""),
    "checksum_failures": ("checksum_failures", ""),
    "checksum_last_failure": ("checksum_last_failure", ""),
}


def _sessions(interval: Interval, rows: list[Row]) -> Table:
    """Return the table of how sessions ended and how they spent their time.

    It has the columns that this server has; checksum columns only if a checksum failed.
    """
    has = interval.columns("pg_stat_database")
    shown = []
    for one in _SESSIONS:
        name = _OF_SESSIONS.get(one["name"], (one["name"], ""))[0]
        if name in has and (not name.startswith("checksum") or any(row["checksum_failures"] for row in rows)):
            shown.append(one)
    counted = [row for row in rows if row["sessions"] is not None or row["verdict"] != "ok"]
    return table("Sessions, by database", [_SESSIONS[0], *shown], counted)


def _boundaries(interval: Interval) -> list[str]:
    """Return notes on activity that may be missing, because the server counts it only when a transaction ends."""
    notes = []
    for end in (interval.before, interval.after):
        open_ones = end.facts.get("long_transactions")
        if open_ones:
            notes.append(
                f"{open_ones} transactions were open for more than 5 s in snapshot {end.number}: their work is "
                "counted when they end"
            )
    return notes


_LINES = (
    ("DB time (active sessions)", "active_time", "ns", 1e6),
    ("transactions committed", "commits", "count", 1),
    ("transactions rolled back", "xact_rollback", "count", 1),
    ("blocks asked for", "blks_hit + blks_read", "count", 1),
    ("blocks read", "blks_read", "count", 1),
    ("rows returned by scans", "tup_returned", "count", 1),
    ("rows fetched by index", "tup_fetched", "count", 1),
    ("rows inserted", "tup_inserted", "count", 1),
    ("rows updated", "tup_updated", "count", 1),
    ("rows deleted", "tup_deleted", "count", 1),
    ("temporary files written", "temp_bytes", "bytes", 1),
    ("sessions begun", "sessions", "count", 1),
)


@needs("pg_stat_database", name="profile", title="Load profile", what="the load")
def profile(interval: Interval, top: int) -> Part:
    """Return the section LOAD PROFILE over all databases, with WAL and statements."""
    view = "pg_stat_database"
    has = interval.columns(view) | {"commits"}
    interval.table(view)
    own = sum(own_transactions(interval).values())
    sums = {}
    for label, sql, _, _ in _LINES:
        words = [word for word in sql.replace("+", " ").split() if word]
        known = all(word in has for word in words)
        expression = sql.replace("commits", "xact_commit")
        sums[label] = f"sum({expression})" if known else "null"
    selected = ", ".join(f'{sql} as "{label}"' for label, sql in sums.items())
    lost = "list(datname order by datname) filter (verdict <> 'ok' and datname is not null) as lost"
    totals = interval.query(f"select {selected}, bool_and(verdict = 'ok') as whole, {lost} from {view}")[0]
    if totals["lost"] and not totals["transactions committed"]:  # the others were idle: a 0 would be misleading
        totals |= dict.fromkeys((label for label, *_ in _LINES), None)
    if totals["transactions committed"] is not None:
        done = totals["transactions committed"]
        totals["transactions committed"] = done - own if done >= own else done
    values = [(label, totals[label], unit, factor) for label, _, unit, factor in _LINES]
    values += _log(interval) + _calls(interval)
    floats = [(label, None if value is None else float(value), unit, factor) for label, value, unit, factor in values]
    return load_profile(
        interval,
        floats,
        (totals["transactions committed"] or 0) + (totals["transactions rolled back"] or 0),
        about="total of all databases; a transaction is a commit or a rollback",
        notes=_left_out(totals),
    )


def _left_out(totals: Row) -> list[str]:
    """Return a note on the databases that are missing from the sums."""
    if totals["whole"]:
        return []
    names = ", ".join(totals["lost"] or ()) or "shared objects"
    return [f"{names}: the difference is not known; left out of the sums of transactions, blocks, rows and sessions"]


def _log(interval: Interval) -> list[tuple[str, Any, str, float]]:
    old, new = (end.facts.get("wal_bytes") for end in (interval.before, interval.after))
    word = interval.verdict("cluster").word
    written = None if old is None or new is None or word == "failover" else new - old
    found: list[tuple[str, Any, str, float]] = [("WAL written (by position)", written, "bytes", 1)]
    if interval.has("pg_stat_wal"):
        row = interval.query("select wal_records, wal_fpi from pg_stat_wal", "pg_stat_wal")[0]
        found += [("WAL records", row["wal_records"], "count", 1), ("full page images", row["wal_fpi"], "count", 1)]
    return found


def _calls(interval: Interval) -> list[tuple[str, Any, str, float]]:
    if not interval.has("pg_stat_statements"):
        return []
    has = interval.columns("pg_stat_statements")
    name = "total_exec_time" if "total_exec_time" in has else "total_time"
    top = "where toplevel is not false" if "toplevel" in has else ""
    row = interval.query(
        f"select sum(calls) as calls, sum({name}) as time from pg_stat_statements {top}",
        "pg_stat_statements",
    )[0]
    return [("statements executed", row["calls"], "count", 1), ("time in statements", row["time"], "ns", 1e6)]
