"""Report section on replication: standbys, the upstream server, slots, and statements that replay cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Heading, Part, Row, Table, columns, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import column_or_null

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_STANDBYS = columns(
    "application:text client:text state:text sync:text sent:bytes:behind_sent replayed:bytes:behind_replayed"
    " replay_lag:ns flush_lag:ns write_lag:ns"
)
_SLOTS = columns(
    "slot:text type:text active:text keeps:bytes:WAL_kept keeps_before:bytes:before status:text"
    " safe:bytes:may_still_grow reason:text:invalidated"
)
_RECEIVER = columns("sender:text status:text slot:text received:bytes:received behind:bytes last_message:time")
_REPLAY = columns("what:text value:quantity unit:text:")


def replication(interval: Interval, top: int) -> Part:
    """Return the section on standbys and slots at the end of the interval, their lag, and a standby's receiver."""
    in_recovery = bool(interval.after.facts.get("in_recovery"))
    standbys = _standbys(interval)
    receiver = _receiver(interval)
    notes = ["this server is a standby" if in_recovery else "this server is a primary"]
    if not standbys:
        notes.append("no standby is connected")
    if in_recovery and not receiver:
        notes.append("no WAL receiver runs: WAL comes from the archive, or not at all")
    if in_recovery and interval.after.facts.get("replay_paused"):
        notes.append("replay is paused")
    slots = _slots(interval)
    if not slots:
        notes.append("there is no replication slot")
    return section(
        "replication",
        "Replication",
        [
            table("Standbys", _STANDBYS, standbys),
            table("Receiver", _RECEIVER, receiver),
            table("Replay", _REPLAY, _replay(interval) if in_recovery else []),
            table("Prefetch of replay", *_prefetch(interval)) if in_recovery else None,
            table("Statements that replay cancelled", *_conflicts(interval)),
            table("Slots", _SLOTS, slots),
            _logical(interval),
            _subscriptions(interval),
        ],
        about="behind: WAL that was written here but not yet sent, or not yet replayed there. Lags are those of the "
        "last commits that the standby confirmed; an idle server shows none.",
        notes=notes,
    )


def _position(interval: Interval, end: int = 1) -> str:
    """Return SQL for the WAL position at one end of the interval."""
    known = (interval.before, interval.after)[end].facts.get("wal_bytes")
    return "null::bigint" if known is None else str(int(known))


def _beyond(there: str, here: str) -> str:
    """Return SQL for the distance by which `here` is ahead of `there`, at least 0; NULL if either is not known.

    This server's position is read first, so a standby or slot that advanced meanwhile counts as level with it.
    """
    return f"case when {here} < {there} then 0 else {here} - {there} end"


def _standbys(interval: Interval) -> list[Row]:
    if not interval.has("pg_stat_replication"):
        return []
    here = _position(interval)
    lags = ", ".join(f"{name}_lag * 1000 as {name}_lag" for name in ("write", "flush", "replay"))
    return interval.query(
        f"""select application_name as application, client_addr as client, state, sync_state as sync,
          {_beyond("sent_lsn", here)} as sent, {_beyond("replay_lsn", here)} as replayed, {lags}
        from {interval.ends("pg_stat_replication")[1]} order by application, client""",
    )


def _slots(interval: Interval) -> list[Row]:
    view = "pg_replication_slots"
    if not interval.has(view):
        return []
    has = interval.columns(view)
    now, before = (_position(interval, end) for end in (1, 0))
    text = {name: name if name in has else "null::varchar" for name in ("wal_status", "invalidation_reason")}
    return interval.query(
        f"""select slot_name as slot, slot_type as type, active::varchar as active,
          {_beyond("restart_lsn", now)} as keeps, {_beyond("restart_lsn_before", before)} as keeps_before,
          {text["wal_status"]} as status, {column_or_null("safe_wal_size", has)} as safe,
          {text["invalidation_reason"]} as reason, verdict, why
        from {view} where life <> 'gone' order by keeps desc nulls last, slot""",
        view,
    )


def _receiver(interval: Interval) -> list[Row]:
    view = "pg_stat_wal_receiver"
    if not interval.has(view):
        return []
    after = interval.ends(view)[1]
    names = {column.name for column in interval.after.columns(view)}
    received = "flushed_lsn" if "flushed_lsn" in names else "received_lsn"
    return interval.query(
        f"""select sender_host || ':' || sender_port as sender, status, slot_name as slot,
          {received} - receive_start_lsn as received, {_beyond(received, "latest_end_lsn")} as behind,
          last_msg_receipt_time as last_message
        from {after}"""
    )


def _replay(interval: Interval) -> list[Row]:
    """Return what a standby replayed during the interval, and how far it lags."""
    old, new = interval.before.facts, interval.after.facts
    rows: list[Row] = []

    def add(what: str, value: float | None, unit: str) -> None:
        if value is not None:
            rows.append({"what": what, "value": value, "unit": unit})

    done, start = new.get("wal_bytes"), old.get("wal_bytes")
    if done is not None and start is not None and interval.verdict("cluster").word != "failover":
        add("replayed", done - start, "bytes")
    if done is not None and new.get("received_bytes") is not None:
        add("received but not replayed", max(0, new["received_bytes"] - done), "bytes")
    if new.get("replayed_us") is not None:
        add("age of the last transaction replayed", max(0, new["at_us"] - new["replayed_us"]) * 1000, "ns")
    return rows


def _prefetch(interval: Interval) -> tuple[list[Heading], list[Row]]:
    view = "pg_stat_recovery_prefetch"
    shown = columns("prefetched hits skipped_init skipped_new skipped_image skipped_repeated")
    if not interval.has(view):
        return shown, []
    rows = interval.query(
        f"""select prefetch as prefetched, hit as hits, skip_init as skipped_init, skip_new as skipped_new,
          skip_fpw as skipped_image, skip_rep as skipped_repeated, verdict, why from {view}
        where verdict <> 'ok' or prefetch + hit + skip_init + skip_new + skip_fpw + skip_rep > 0""",
        view,
    )
    return shown, rows


def _conflicts(interval: Interval) -> tuple[list[Heading], list[Row]]:
    """Return conflicts by kind; the server counts them only on a standby."""
    view = "pg_stat_database_conflicts"
    has = interval.columns(view)
    kinds = [name for name in sorted(has) if name.startswith("confl_")]
    shown = columns("database:text " + " ".join(f"{n}:count:{n.removeprefix('confl_')}" for n in kinds))
    if not kinds:
        return shown, []
    counts = " + ".join(kinds)
    rows = interval.query(
        f"select datname as database, {', '.join(kinds)}, verdict, why from {view}"
        f" where datname is not null and {counts} > 0 order by {counts} desc",
        view,
    )
    return shown, rows


def _logical(interval: Interval) -> Table | None:
    view = "pg_stat_replication_slots"
    if not interval.has(view):
        return None
    has = interval.columns(view)
    rows = interval.query(
        f"""select slot_name as slot, {column_or_null("total_txns", has)} as transactions,
          {column_or_null("total_bytes", has)} as bytes, spill_txns as spilled, spill_bytes as spill_bytes,
          stream_txns as streamed, {column_or_null("stream_bytes", has)} as stream_bytes, verdict, why from {view}""",
        view,
    )
    shown = columns("slot:text transactions bytes:bytes spilled spill_bytes:bytes streamed stream_bytes:bytes")
    return table("Logical decoding", shown, rows)


def _subscriptions(interval: Interval) -> Table | None:
    view = "pg_stat_subscription_stats"
    if not interval.has(view):
        return None
    conflicts = " + ".join(n for n in sorted(interval.columns(view)) if n.startswith("confl_")) or "null::double"
    rows = interval.query(
        f"""select subname as subscription, apply_error_count as apply_errors, sync_error_count as sync_errors,
          {conflicts} as conflicts, verdict, why from {view} order by 1""",
        view,
    )
    return table("Subscriptions", columns("subscription:text apply_errors sync_errors conflicts"), rows)
