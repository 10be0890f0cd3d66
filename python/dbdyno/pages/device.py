"""Builder of pages about devices: a fit to measurements, and the replay of a block trace."""

from __future__ import annotations

from dbdyno.base.json_types import TableRow
from dbdyno.page import Head, Page, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.common import columns, data, table
from dbdyno.pages.reading import Analysis

JOBS = ("job", "operation", "depth", "measured_us", "measured_iops", "modelled_iops", "error", "fitted")
COMPARED = ("operation", "figure", "modelled_us", "measured_us", "error")


def fit(model: Analysis) -> Page:
    """Return the page about a fitted device: the errors of the fit, and the device as TOML."""
    jobs, rows = reading.entries(model, "jobs"), reading.entries(model, "rows")
    tables = (_jobs(jobs), _comparison_table(rows, "The second half of the trace: on the device, and as measured"))
    return Page(
        Head("Device", fmt.line(model.get("title") or "a device", 200), "device_fit", section="Device"),
        (
            Section(
                "fit", "The fit", tables=tuple(one for one in tables if one.rows), sentences=reading.sentences(model)
            ),
            Section("toml", "The device", text=fmt.text(model.get("toml") or ""), text_title="The device as TOML"),
        ),
        data=lambda: data(JOBS, jobs) if jobs else data(COMPARED, rows),
    )


def replay(model: Analysis) -> Page:
    """Return the page about a replay: the trace, and the times on the device beside those in the trace."""
    rows = reading.entries(model, "rows")
    facts: list[TableRow] = [
        {"what": "format", "value": fmt.line(model.get("form") or "")},
        {"what": "requests", "value": fmt.count(model.get("requests"))},
        {"what": "length", "value": fmt.span(model.get("seconds"))},
        {"what": "most requests in flight at once, on the device", "value": fmt.count(model.get("outstanding"))},
    ]
    if (gap := fmt.number(model.get("gap"))) is not None:
        facts.append({"what": "largest gap between the distributions (KS)", "value": f"{gap:.3f}"})
    return Page(
        Head("Replay", fmt.line(model.get("title") or "a trace", 200), "device_replay", section="Replay"),
        (
            Section(
                "times",
                "Times of requests",
                tables=(_comparison_table(rows, "On the device, and in the trace"),),
                sentences=reading.sentences(model),
            ),
            Section("trace", "What was replayed", tables=(table("", columns("what:text value:words"), facts),)),
        ),
        data=lambda: data(COMPARED, rows),
    )


def _jobs(jobs: list[TableRow]) -> Table:
    rows = [
        {
            "job": fmt.line(row.get("job") or "", 60),
            "operation": fmt.line(row.get("operation") or ""),
            "depth": row.get("depth"),
            "time": _ns(row.get("measured_us")),
            "measured": row.get("measured_iops"),
            "modelled": row.get("modelled_iops"),
            "error": _error(row.get("error")),
            "used": "its service times" if row.get("fitted") else "",
        }
        for row in jobs
    ]
    shown = columns(
        "job:text operation:text depth:count time:ns:mean_time measured:count:measured_I/Os_per_s"
        " modelled:count:device's_I/Os_per_s error:words:difference used:text:fitted"
    )
    return table("Measured jobs compared with the device", shown, rows)


def _comparison_table(rows: list[TableRow], title: str) -> Table:
    shown = columns("operation:text figure:text modelled:ns:device measured:ns:trace error:words:difference")
    made = [
        {
            "operation": fmt.line(row.get("operation") or ""),
            "figure": fmt.line(row.get("figure") or ""),
            "modelled": _ns(row.get("modelled_us")),
            "measured": _ns(row.get("measured_us")),
            "error": _error(row.get("error")),
        }
        for row in rows
    ]
    return table(title, shown, made)


def _ns(us: object) -> float | None:
    given = fmt.number(us)
    return None if given is None else given * 1e3


def _error(value: object) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else fmt.change(1 + given)
