"""Section of a rehearsal's page about the replay of the capture on both sides, at several speeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis

_PACE = columns(
    "speed:text side:text kept:words:turns_in_time asked:per_s:asked/s done:per_s:done/s late:ns:behind"
    " mean:ns:mean_transaction p99:ns:p99"
)
_SERVER = columns(
    "speed:text side:text wal:bytes:WAL temp:bytes:temporary_files checkpoints:number2 active:number2:active_sessions"
    " waits:text:their_waits"
)


def replay_section(model: Analysis) -> Section | None:
    """Return the section about the replay, or None if the load was not replayed."""
    replay = reading.dig(model, "replay")
    if not replay:
        return None
    rows = reading.entries(model, "replay", "speeds")
    sessions, transactions = (fmt.count(replay.get(key) or 0) for key in ("sessions", "transactions"))
    about = (
        f"The capture with its sessions, up to {sessions} at once, and its think times: {transactions} transactions in"
        f" {fmt.duration(replay.get('then_ns'))}, on both sides alternately. Where it writes, each turn has a copy"
        " of the database of its own."
    )
    return Section(
        "replay",
        "The load as it was",
        about,
        sentences=reading.sentences(replay),
        tables=(
            common.table("", _PACE, [_pace(row) for row in rows]),
            common.table("On the server, per turn", _SERVER, [_server(row) for row in rows]),
            *_answers(model),
        ),
        notes=tuple(fmt.line(note, 300) for note in reading.strings(replay, "notes")),
    )


def _pace(row: Mapping[str, Any]) -> TableRow:
    kept, turns, paced = row.get("kept") or 0, row.get("turns") or 0, row.get("asked_per_s") is not None
    return {
        **_name(row),
        "kept": Cell(f"{kept} of {turns}" if paced else fmt.NONE, tone="" if kept or not paced else "bad"),
        "asked": row.get("asked_per_s"),
        "done": row.get("done_per_s"),
        "late": row.get("late_ns") if paced else None,
        "mean": row.get("mean_ns"),
        "p99": row.get("p99_ns"),
    }


def _server(row: Mapping[str, Any]) -> TableRow:
    waits = reading.dig(row, "waits") or {}
    kinds = ("checkpoints_timed", "checkpoints_requested")
    return {
        **_name(row),
        "wal": row.get("wal_bytes"),
        "temp": row.get("temp_bytes"),
        "checkpoints": sum(row[kind] for kind in kinds) if all(kind in row for kind in kinds) else None,
        "active": row.get("active"),
        "waits": ", ".join(f"{fmt.line(name)} {fmt.percent(share)}" for name, share in waits.items()) or fmt.NONE,
    }


def _name(row: Mapping[str, Any]) -> TableRow:
    speed = fmt.number(row.get("speed")) or 0.0
    return {"speed": f"{speed:g}x" if speed else "max", "side": fmt.line(row.get("side") or "")}


def _answers(model: Analysis) -> tuple[Table, ...]:
    rows = reading.entries(model, "replay", "statements")
    if not rows:
        return ()
    shown = columns(
        "old_fails:count:old_fails new_fails:count:new_fails old_rows:count:old_other_rows"
        " new_rows:count:new_other_rows"
    )
    cells = [
        {"text": fmt.line(row.get("text") or "", 90), **{one.name: row.get(one.name) or 0 for one in shown}}
        for row in rows
    ]
    named = Column("text", "answers that differ from the capture", "code", narrowest=24)
    return (common.table("", (named, *shown), cells, most=8),)
