"""Sections that show client, network and server time of calls side by side, by statement."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.json_types import TableRow
from dbdyno.page import Section
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis

_SHOWN_MOST = 20


def sections(model: Analysis) -> Iterator[Section]:
    """Yield the answer, the statements, and the server's waits in these calls."""
    sentences = tuple(fmt.line(sentence) for sentence in model.get("answer") or [])
    yield Section("trace_join", "Who had the time", sentences=sentences)
    shown = columns(
        "calls:count client_ns:seconds:client_s server_ns:seconds:server_s between_ns:seconds:way_s"
        " client_p50_ns:ns:client_p50 server_p50_ns:ns:server_p50 between_p50_ns:ns:way_p50 text:text:statement"
    )
    statements = statement_rows(model)
    yield Section("trace_join_statements", "By statement", tables=(common.table("", shown, statements[:_SHOWN_MOST]),))
    events = reading.entries(model, "events")
    if events:
        what = columns("event:text class:text count:count total_ns:seconds:seconds")
        table = common.table("", what, events[:_SHOWN_MOST], look="slim")
        yield Section("trace_join_events", "What the server waited for in these calls", tables=(table,))


def statement_rows(model: Analysis) -> list[TableRow]:
    """Return one row per statement."""
    return [{**row, "text": fmt.line(row.get("text") or "", 90)} for row in reading.entries(model, "statements")]
