"""The sections of PostgreSQL's report, in order; a section that fails says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part
from dbdyno.snapshot.engines.postgres import (
    functions,
    load,
    queries,
    relations,
    replication,
    server,
    settings,
    sizes,
    totals,
    waits,
)
from dbdyno.snapshot.model import build_sections
from dbdyno.snapshot.plans.plan_changes import plans
from dbdyno.snapshot.sessions import blocking
from dbdyno.snapshot.sessions import report as session_report

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

ORDER = (
    ("throughput", load.throughput),
    ("tables", relations.tables),
    ("profile", load.profile),
    ("sessions", session_report.activity),
    ("waits", waits.waits),
    ("sql", queries.statements),
    ("plans", plans),
    ("totals", totals.totals),
    ("functions", functions.functions),
    ("io", server.io),
    ("wal", server.log),
    ("slru", server.slru),
    ("vacuum", relations.vacuum),
    ("indexes", relations.indexes),
    ("sizes", sizes.sizes),
    ("blocking", blocking.section),
    ("locks", waits.locks),
    ("replication", replication.replication),
    ("settings", settings.settings),
    ("extensions", settings.extensions),
    ("changes", server.changes),
)


def sections(interval: Interval, top: int) -> list[Part]:
    """Return all sections, in order."""
    return build_sections(ORDER, interval, top)
