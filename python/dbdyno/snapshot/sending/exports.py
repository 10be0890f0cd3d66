"""The last snapshots of a store as metrics for Prometheus and OpenTelemetry.

Names are those of the usual exporter if there is one: `pg_stat_database_xact_commit` with the labels datid and datname
(postgres_exporter), `mysql_global_status_<name>` (mysqld_exporter). Metrics specific to dbdyno begin with `dbdyno_`.
Counters are exported raw: their reader computes rates and handles resets. Only the store is read, not a server.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import Error
from dbdyno.base.json_types import TableRow
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.sending.alerts import last_metrics
from dbdyno.snapshot.store.folder import Snapshot, Store

POSTGRES = {
    "pg_stat_database": ("datid", "datname"),
    "pg_stat_bgwriter": (),
    "pg_stat_checkpointer": (),
    "pg_stat_wal": (),
    "pg_stat_archiver": (),
    "pg_stat_slru": ("name",),
    "pg_stat_io": ("backend_type", "object", "context"),
}
"""Views whose counters are always exported, and their labels."""
TABLES = {
    "pg_stat_user_tables": ("datname", "schemaname", "relname"),
    "pg_statio_user_tables": ("datname", "schemaname", "relname"),
}
"""Views with counters of each table, exported only on request because there are many, and their labels."""
TOTAL_VIEWS = ("pg_stat_bgwriter", "pg_stat_checkpointer")
"""Views whose counters have names that end in `_total` in postgres_exporter."""
_PLAIN = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True)
class Sample:
    """One value of a metric; `is_counter` means that it only grows until it is reset."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    at_ns: int


def stores(folder: Path) -> list[Store]:
    """Return the store in a folder, and the stores in its subfolders (of a fleet)."""
    found = [Store(folder), *(Store(path) for path in sorted(folder.glob("*")) if not path.name[:1].isdigit())]
    return [store for store in found if store.numbers()]


def samples(folder: Path, *, tables: bool = False) -> list[Sample]:
    """Return every sample of the latest snapshot of each target; with `tables`, also the counters of each table."""
    return [
        one
        for store in stores(folder)
        for snapshot in _latest(store)
        for one in (*_snapshot_samples(store, snapshot), *_raw(snapshot, tables))
        if math.isfinite(one.value)
    ]


def prometheus(samples: Iterable[Sample]) -> str:
    """Return samples in Prometheus' text format 0.0.4, with samples of one name next to each other."""
    by_name: dict[str, list[Sample]] = {}
    for one in samples:
        by_name.setdefault(one.name, []).append(one)
    lines = []
    for name, group in by_name.items():
        lines.append(f"# TYPE {name} {'counter' if group[0].is_counter else 'gauge'}")
        for one in group:
            labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in one.labels)
            lines.append(f"{name}{{{labels}}} {one.value:.17g}")
    return "\n".join(lines) + "\n"


def otlp(samples: Iterable[Sample]) -> bytes:
    """Return samples as OTLP/HTTP JSON with one resource per target, to be POSTed to /v1/metrics."""
    targets: dict[str, dict[str, list[Sample]]] = {}
    for one in samples:
        targets.setdefault(dict(one.labels)["target"], {}).setdefault(one.name, []).append(one)
    resources = [
        {
            "resource": {"attributes": [_attribute("service.name", "dbdyno"), _attribute("dbdyno.target", target)]},
            "scopeMetrics": [{"scope": {"name": "dbdyno.snap"}, "metrics": [_metric(n, g) for n, g in names.items()]}],
        }
        for target, names in targets.items()
    ]
    return json.dumps({"resourceMetrics": resources}).encode()


def _metric(name: str, group: list[Sample]) -> dict[str, object]:
    points = [
        {
            "timeUnixNano": str(one.at_ns),
            "asDouble": one.value,
            "attributes": [_attribute(key, value) for key, value in one.labels if key != "target"],
        }
        for one in group
    ]
    if group[0].is_counter:
        return {"name": name, "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": points}}
    return {"name": name, "gauge": {"dataPoints": points}}


def _attribute(key: str, value: str) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


def _latest(store: Store) -> list[Snapshot]:
    """Return the last snapshot of each target among the last thousand numbers."""
    found: dict[str, Snapshot] = {}
    first = max(0, (store.numbers() or [0])[-1] - 1000)
    for one in store.since(first):
        found[one.target] = one
    return list(found.values())


def _snapshot_samples(store: Store, snapshot: Snapshot) -> Iterator[Sample]:
    """Yield the samples of the snapshot itself, and the metrics of the sub-interval that ends with it."""
    labels = (("target", snapshot.target), ("engine", snapshot.engine))
    yield Sample("dbdyno_snapshot_number", labels, float(snapshot.number), True, snapshot.at_ns)
    yield Sample("dbdyno_snapshot_time_seconds", labels, snapshot.at_ns / 1e9, False, snapshot.at_ns)
    unread = sum(1 for record in snapshot.views.values() if record.get("problem"))
    yield Sample("dbdyno_snapshot_unread_views", labels, float(unread), False, snapshot.at_ns)
    for name, value in last_metrics(store, snapshot).items():
        if value is not None:
            yield Sample(f"dbdyno_{_PLAIN.sub('_', name)}", labels, value, False, snapshot.at_ns)


def _raw(snapshot: Snapshot, tables: bool) -> Iterator[Sample]:
    asked = {**POSTGRES, **(TABLES if tables else {})}
    for view, wanted in asked.items():
        columns = {c.name: c for c in snapshot.columns(view)}
        labels = [name for name in wanted if name in columns]
        counters = [name for name, c in columns.items() if c.kind in ("counter", "sum")]
        total = "_total" if view in TOTAL_VIEWS else ""
        for row in _rows(snapshot, view, [*labels, *counters]):
            words = (("target", snapshot.target), *((n, str(row[n] if row[n] is not None else "")) for n in labels))
            for name in counters:
                if row[name] is not None:
                    yield Sample(f"{view}_{name}{total}", words, float(row[name]), True, snapshot.at_ns)
    for view, is_counter in (("global_status", True), ("global_status_now", False)):
        for row in _rows(snapshot, view, ["name", "value"]):
            name = f"mysql_global_status_{_PLAIN.sub('_', str(row['name']).lower())}"
            if isinstance(row["value"], int | float):
                yield Sample(name, (("target", snapshot.target),), float(row["value"]), is_counter, snapshot.at_ns)


def _rows(snapshot: Snapshot, view: str, names: list[str]) -> list[TableRow]:
    """Return rows of a view; empty if it was not read or lacks one of these columns."""
    here = {c.name for c in snapshot.columns(view)}
    if not names or not set(names) <= here or snapshot.problem(view) is not None:
        return []
    from dbdyno.evidence.duck import duckdb

    relation = snapshot.relation(view)
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    try:
        with file_connection() as connection:
            rows = connection.execute(f"select {quoted} from {relation}").fetchall() if relation else []
    except duckdb.Error:
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class CachedText:
    """Prometheus text that is computed at most once in `least_s` seconds, however often it is requested."""

    def __init__(self, folder: Path, *, tables: bool, least_s: float = 5.0) -> None:
        self._folder, self._tables, self._least_s = folder, tables, least_s
        self._at, self._text = -math.inf, ""

    def text(self) -> str:
        """Return the text for Prometheus; if the store cannot be read, it says only that the store is down."""
        if time.monotonic() - self._at > self._least_s:
            try:
                self._text = prometheus(samples(self._folder, tables=self._tables))
            except (Error, OSError):
                self._text = "# TYPE dbdyno_store_up gauge\ndbdyno_store_up 0\n"
            self._at = time.monotonic()
        return self._text
