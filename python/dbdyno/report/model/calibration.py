"""The page about a fit: quantiles, distances beside the noise floor, likeness, regimes, text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("p", "us", "low", "high", "error", "floor")


def view(model: Analysis) -> base.View:
    """Tables of text, sentences and the device."""
    return {
        "title": fmt.line(model.get("title") or "a fit"),
        "tables": [
            table for table in (_quality(model), _quantiles(model), _lags(model), _regimes(model)) if table["rows"]
        ],
        "sentences": [fmt.line(text, 400) for text in reading.strings(model, "sentences")],
        "toml": fmt.text(model.get("toml") or ""),
    }


def _share(value: Any, digits: int = 1) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else f"{given:+.{digits}%}"


def _plain(value: Any) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else f"{given:.3f}"


def _us(value: Any) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else fmt.duration(given * 1e3)


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per quantile: measured value, interval, the table's error, the noise floor."""
    errors, floors = (reading.dig(model, key, "quantiles") or [] for key in ("distance", "floor"))
    given = reading.entries(model, "quantiles")
    found = []
    for row, error, floor in zip(given, errors, floors, strict=False):
        both = {**row, "error": error, "floor": floor}
        found.append({name: both.get(name) for name in COLUMNS})
    return found


def _quality(model: Analysis) -> base.View:
    distance, floor = (reading.dig(model, key) or {} for key in ("distance", "floor"))
    return {
        "title": "Fit to the first half, held to the second",
        "columns": ["distance", "table", "the halves themselves"],
        "rows": [
            [words, _plain(distance.get(key)), _plain(floor.get(key))]
            for words, key in (
                ("largest gap of distributions (KS)", "ks"),
                ("mean gap of log quantiles (W1)", "log_w1"),
            )
        ],
    }


def _quantiles(model: Analysis) -> base.View:
    return {
        "title": "Quantiles",
        "columns": ["quantile", "measured", "95 % low", "95 % high", "table's error", "floor"],
        "rows": [
            [
                f"p{(row['p'] or 0) * 100:g}",
                _us(row["us"]),
                _us(row["low"]),
                _us(row["high"]),
                _share(row["error"]),
                _share(row["floor"]),
            ]
            for row in rows(model)
        ],
    }


def _lags(model: Analysis) -> base.View:
    return {
        "title": "Likeness of log latencies (autocorrelation)",
        "columns": ["requests apart", "measured", "one table", "regimes"],
        "rows": [
            [fmt.count(row.get("lag")), _plain(row.get("measured")), "0.000", _plain(row.get("regimes"))]
            for row in reading.entries(model, "lags")
        ],
    }


def _regimes(model: Analysis) -> base.View:
    return {
        "title": "Regimes",
        "columns": ["regime", "share of requests", "p50", "p99", "mean stay", "requests in a stay"],
        "rows": [
            [
                name,
                _share(row.get("share")).lstrip("+"),
                _us(row.get("p50_us")),
                _us(row.get("p99_us")),
                fmt.duration((fmt.number(row.get("stay_ms")) or 0) * 1e6),
                fmt.count(round(fmt.number(row.get("stay_requests")) or 0)),
            ]
            for name, row in zip(("usual", "slow"), reading.entries(model, "regimes"), strict=False)
        ],
    }


def print_page(model: Analysis, page: Console) -> None:
    """The judgement, then the device as text for a machine file."""
    shown = view(model)
    for table in shown["tables"]:
        drawn = console.table(table["title"], table["columns"][:1], table["columns"][1:])
        for row in table["rows"]:
            drawn.add_row(*(console.plain(cell) for cell in row))
        page.print(drawn)
        page.print()
    for sentence in shown["sentences"]:
        page.print(console.plain(sentence))
    page.print()
    for line in shown["toml"].rstrip().split("\n"):
        page.print(console.plain(line), soft_wrap=True)


SECTIONS = (base.Section("model_calibration", "Calibration", view),)
