"""Builder of the page about a flash probe: whether it reached a steady state, each phase, latency over time."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.page import Page, Row, Section
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, with_noun
from dbdyno.pages.reading import Analysis


def page(model: Analysis) -> Page:
    """Return the page about a flash probe."""
    alerts = with_noun(len(reading.entries(model, "warnings")), "warning")
    head = common.decision_head(
        model,
        "Flash probe",
        fmt.line(reading.dig(model, "flash", "path") or ""),
        chips=tuple(_chips(model)),
        alerts=((alerts, "warnings"),) if alerts else (),
    )
    sections = (_phases(model), common.warnings(model, "Warnings", "warnings"), _about_section(model))
    return Page(head, sections, data=lambda: common.flat_table(reading.entries(model, "phases")))


def _chips(model: Analysis) -> Iterator[str]:
    about = reading.dig(model, "flash") or {}
    size, span = fmt.number(about.get("block_bytes")), fmt.number(about.get("span_bytes"))
    if size:
        yield f"requests of {fmt.size(size)}"
    yield f"{fmt.count(about.get('depth') or 1)} at a time"
    yield fmt.line(str(about.get("sync") or ""))
    if span:
        yield f"on {fmt.size(span)}"


def _phases(model: Analysis) -> Section:
    first = reading.dig(model, "steady", "first_write_ns")
    rows = []
    for phase in reading.entries(model, "phases"):
        mean = fmt.number(phase.get("mean_ns"))
        compared = phase.get("phase") == "overwrite" and first and mean
        number = f" {phase.get('round')}" if phase.get("round") else ""
        cells = {
            **phase,
            "phase": fmt.line(f"{phase.get('phase')}{number}"),
            "times": mean / first if compared and mean else None,
        }
        rows.append(Row(cells, style="dim" if phase.get("phase") == "fill" else ""))
    shown = columns(
        "phase:text seconds:span:time:90 requests:count::100 request_bytes:bytes:size:80 per_s:per_s:per_second"
        " bytes_per_s:bytes_per_s:bytes:80 mean_ns:ns:mean times:times:of_a_first_write:110 p50_ns:ns:p50:70"
        " p99_ns:ns:p99 max_ns:ns:max"
    )
    steady = reading.dig(model, "steady") or {}
    about = (
        f"Overwriting is steady when the requests per second of {steady.get('window')} rounds are within"
        f" {fmt.percent(steady.get('range_most'))} of their mean. Their trend line may rise or fall by at most"
        f" {fmt.percent(steady.get('rise_most'))} of the mean (SNIA's rule)."
    )
    drawn = common.figures(model, "flash")
    return Section("flash_phases", "Phases", about, tables=(common.table("", shown, rows),), figures=drawn)


def _about_section(model: Analysis) -> Section:
    run, host = reading.dig(model, "run") or {}, reading.dig(model, "host") or {}
    path = str(reading.dig(model, "flash", "path") or "")
    under = host.get(path)
    facts = [("run", run.get("id")), ("began", fmt.moment(run.get("started_at"))), ("status", run.get("status"))]
    facts += [("under the path", under), ("kernel", host.get("host_kernel")), ("processor", host.get("host_cpu"))]
    facts += [("seed", run.get("seed")), ("dbdyno", run.get("tool_version"))]
    told = tuple((name, fmt.line(str(value))) for name, value in facts if value is not None)
    return Section("flash_about", "About this probe", facts=told)
