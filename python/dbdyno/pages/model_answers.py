"""Builders of pages about a calibrated machine's answers: what-if, comparison with queueing theory, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Head, Page, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.common import columns, figures, flat_table, model_head, table
from dbdyno.pages.reading import Analysis


def _head(model: Analysis, kind: str, name: str) -> Head:
    return model_head(model, kind, fmt.line(model.get("title") or kind, 200), name)


def analysis(model: Analysis) -> Page:
    """Return the page that compares analytic answers with the simulation."""
    rows = reading.entries(model, "rows")
    shown = columns(
        "sessions bound:per_s analytic:per_s simulated:per_s difference:words cores:ratio:cores_busy"
        " device:ratio:device_busy alone:words:commit_if_flushed_alone why:text"
    )
    answers = table("", shown, map(_answer, rows), look="loose")
    laws = columns("sessions law:text says:text left:number:left_side right:number:right_side")
    return Page(
        _head(model, "Analysis", "analysis"),
        (
            Section("answers", "Throughput", "Transactions a second.", tables=(answers,)),
            Section(
                "laws",
                "Operational laws",
                "Both sides of each law, as counted in the simulation. The laws hold for any distributions.",
                tables=(table("", laws, [_law(row) for row in reading.entries(model, "laws")]),),
            ),
        ),
        data=lambda: flat_table(rows),
    )


def _answer(row: Mapping[str, Any]) -> TableRow:
    difference, alone = fmt.number(row.get("difference")), fmt.number(row.get("alone_ns"))
    return {
        **{key: fmt.number(row.get(key)) for key in ("sessions", "bound", "analytic", "simulated", "cores", "device")},
        "difference": fmt.NONE if difference is None else f"{difference:+.1%}",
        "alone": fmt.NONE if alone is None else fmt.duration(alone),
        "why": fmt.line(row.get("why") or "", 200),
    }


def _law(row: Mapping[str, Any]) -> TableRow:
    words = {key: fmt.line(row.get(key) or "", 100) for key in ("law", "says")}
    return {**words, **{key: fmt.number(row.get(key)) for key in ("sessions", "left", "right")}}


def sensitivity(model: Analysis) -> Page:
    """Return the page about the parameters that change the answer most."""
    rows = reading.entries(model, "rows")
    shown = columns(
        "path:text:parameter value:number range:words rate:words:throughput_over_its_range"
        " tail:words:p99_over_its_range"
        " depends:words:depends_on_others"
    )
    if model.get("samples"):
        shown += columns(
            "throughput_first:words:throughput,_alone throughput_total:words:throughput,_with_others"
            " p99_first:words:p99,_alone p99_total:words:p99,_with_others"
        )
    return Page(
        _head(model, "Sensitivity", "sensitivity"),
        (
            Section(
                "parameters",
                "Parameters",
                "Mean absolute effect (Morris) of a parameter over its range, with the others at random values."
                + (_SOBOL if model.get("samples") else ""),
                tables=(
                    table("", shown, map(_change_row, rows), left_out=int(fmt.number(model.get("left_out")) or 0)),
                ),
            ),
        ),
        data=lambda: flat_table(rows),
    )


_SOBOL = (
    " Alone and with others: shares of the variance that a parameter explains when all vary at once (Sobol); a"
    " share below 0 is sampling error."
)
_INDICES = ("throughput_first", "throughput_total", "p99_first", "p99_total")


def _change_row(row: Mapping[str, Any]) -> TableRow:
    def over(key: str) -> float:
        return math.expm1(min(fmt.number(row.get(key)) or 0.0, 50.0))

    assumed = " (assumed)" if row.get("assumed") else ""
    worst = max((fmt.number(row.get(f"{name}_sigma")) or 0.0) for name in ("throughput", "p99"))
    mean = max((fmt.number(row.get(f"{name}_mu")) or 0.0) for name in ("throughput", "p99"))
    return {
        "path": fmt.line(row.get("path") or ""),
        "value": fmt.number(row.get("value")),
        "range": f"{fmt.significant(row.get('low'))} to {fmt.significant(row.get('high'))}{assumed}",
        "rate": f"{over('throughput_mu'):.1%}",
        "tail": f"{over('p99_mu'):.1%}",
        "depends": "yes" if worst > mean else "little",
        **{key: f"{fmt.number(row[key]) or 0.0:.0%}" for key in _INDICES if key in row},
    }


def what_if(model: Analysis) -> Page:
    """Return the page about a what-if: the bottleneck of each combination, the curves, and all combinations."""
    axes, points = reading.strings(model, "axes"), reading.entries(model, "points")
    priced = bool(model.get("priced"))
    spec = " ".join(f"{fmt.line(name).replace(' ', '_')}:words" for name in axes)
    spec += " throughput:per_s"
    # A narrow terminal leaves out columns from the right, and who names prices asks for this one.
    spec += " per_money:count:transactions_per_unit_of_money" if priced else ""
    spec += " band:words p50:ns p99:ns p99_band:words:p99,_band"
    spec += " cores_busy:ratio:cores_busy device_busy:ratio:device_busy"
    reads = any(fmt.number(point.get("data_busy")) for point in points)
    shown = columns(spec + (" data_busy:ratio:data_device_busy" if reads else "") + " binds:text")
    rows = [_point(point, axes, priced) for point in points]
    return Page(
        _head(model, "What if", "whatif"),
        (
            Section("figures", "Curves", figures=figures(model, "whatif"), where="page"),
            Section(
                "points",
                "Combinations",
                "The band is the uncertainty of the fit; it excludes effects that the model omits.",
                tables=(table("", shown, rows),),
            ),
        ),
        data=lambda: flat_table(points),
    )


def _point(point: Mapping[str, Any], axes: list[str], priced: bool) -> TableRow:
    def band(low: str, high: str, words: Callable[[object], str]) -> str:
        return f"{words(point.get(low))} to {words(point.get(high))}"

    row = {fmt.line(name).replace(" ", "_"): fmt.line(point.get(name) or "") for name in axes}
    return {
        **row,
        "throughput": fmt.number(point.get("throughput")),
        "band": band("low", "high", fmt.rate),
        "p50": fmt.number(point.get("p50")),
        "p99": fmt.number(point.get("p99")),
        "p99_band": band("p99_low", "p99_high", fmt.duration),
        "cores_busy": fmt.number(point.get("cores_busy")),
        "device_busy": fmt.number(point.get("device_busy")),
        "data_busy": fmt.number(point.get("data_busy")),
        "binds": fmt.line(point.get("binds") or ""),
        **({"per_money": fmt.number(point.get("per_money"))} if priced else {}),
    }
