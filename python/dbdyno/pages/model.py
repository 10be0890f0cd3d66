"""Builder of pages about models: a machine, the claims that the model is checked against, the fit of latencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Head, Page, Row, Section, Table, Tone
from dbdyno.pages import common, device, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, data, table
from dbdyno.pages.model_answers import analysis, sensitivity, what_if
from dbdyno.pages.model_map import claim_map
from dbdyno.pages.model_prediction import calibration_page, prediction_page
from dbdyno.pages.reading import Analysis

MACHINE = ("path", "value", "unit", "default", "given", "meaning", "source")
CLAIMS = (
    "claim",
    "title",
    "quantity",
    "unit",
    "value",
    "low",
    "high",
    "band_low",
    "band_high",
    "verdict",
    "basis",
    "replications",
    "steady",
    "source",
)
FIT = ("p", "us", "low", "high", "error", "floor")
TONES: dict[str, Tone] = {"holds": "good", "does not hold": "bad", "cannot tell": "doubt"}


def page(model: Analysis) -> Page:
    """Return the page of the kind that the model names."""
    make = {
        "machine": _machine,
        "claims": _claims,
        "claim_map": claim_map,
        "calibration": _calibration,
        "device_fit": device.fit,
        "replay": device.replay,
        "calibrated": calibration_page,
        "prediction": prediction_page,
        "whatif": what_if,
        "analysis": analysis,
        "sensitivity": sensitivity,
    }[str(model.get("page"))]
    return make(model)


def _machine(model: Analysis) -> Page:
    """Return the page about a machine: its drawing, then every parameter with the source of its value."""
    groups: dict[str, list[Row]] = {}
    for entry in reading.entries(model, "parameters"):
        name, _, key = fmt.line(entry.get("path") or "").rpartition(".")
        groups.setdefault(name, []).append(_parameter(entry, key))
    shown = columns("key:left:parameter value:words unit:left meaning:text source:text")
    return Page(
        Head("Machine", _title(model, "a machine"), "machine", fmt.line(model.get("name") or ""), section="Machine"),
        (
            Section("drawing", "The layers of the machine", figures=common.figures(model, "machine")),
            Section(
                "model_parameters",
                "Parameters",
                "Values in bold are given by the machine, the others are defaults.",
                tables=tuple(Table(f"[{name}]" if name else "", shown, tuple(rows)) for name, rows in groups.items()),
                notes=("* given by the machine; all other values are defaults",) if groups else (),
            ),
        ),
        data=lambda: data(MACHINE, reading.entries(model, "parameters")),
    )


def _parameter(entry: Mapping[str, Any], key: str) -> Row:
    given = bool(entry.get("given"))
    words = {name: fmt.line(entry.get(name) or "", 300) for name in ("unit", "meaning", "source")}
    return Row({"key": f"{key} *" if given else key, "value": Cell(_value(entry.get("value")), bold=given), **words})


def _value(value: Any) -> str:
    """Return a parameter's value as text."""
    if value is None:
        return fmt.NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:,.10g}".replace(",", fmt.THIN)
    if isinstance(value, list):
        return fmt.line(", ".join(_value(entry) for entry in value), 60)
    return "a table" if isinstance(value, dict) else fmt.line(value, 60)


def _title(model: Analysis, otherwise: str) -> str:
    return fmt.line(model.get("title") or otherwise)


def _claims(model: Analysis) -> Page:
    """Return the page about claims: what was published, the model's result and whether the claim holds."""
    claims = reading.entries(model, "claims")
    return Page(
        Head(
            "Model", _title(model, "Claims"), "model_claims", fmt.line(model.get("facts") or "", 300), section="Model"
        ),
        (
            Section(
                "claims",
                "Claims",
                "Value and 95 % interval over replications, and the band that the claim requires.",
                parts=tuple(_claim(claim) for claim in claims),
            ),
        ),
        data=lambda: data(CLAIMS, ({**claim, **part} for claim in claims for part in reading.entries(claim, "parts"))),
    )


def _claim(claim: Mapping[str, Any]) -> Section:
    word = fmt.line(claim.get("verdict") or "cannot tell")
    rows = [_part(part) for part in reading.entries(claim, "parts")]
    shown = columns("quantity:text value:words:the_model_gives interval:words:95_%_interval band:words verdict:verdict")
    basis, source = _basis(claim), fmt.line(claim.get("source") or "", 300)
    return Section(
        f"claim-{fmt.line(claim.get('claim') or '').lower()}",
        f"{fmt.line(claim.get('claim') or '')} · {fmt.line(claim.get('title') or '', 200)}",
        tables=(Table("", shown, tuple(rows)),) if rows else (),
        notes=(source, basis, *(fmt.line(note, 600) for note in reading.strings(claim, "notes"))),
        tone=TONES.get(word, "doubt"),
        word=word,
    )


def _basis(claim: Mapping[str, Any]) -> str:
    """Return a phrase that says how much agreement with the claim proves, and how reliable the verdict is."""
    words = fmt.line(claim.get("basis") or "")
    replications = claim.get("replications")
    if replications and claim.get("steady") is False:
        words += f"; not settled by {replications} replications: another seed may give another verdict"
    elif replications:
        words += f"; {replications} replications"
    return words


def _part(part: Mapping[str, Any]) -> Row:
    unit, word = fmt.line(part.get("unit") or ""), fmt.line(part.get("verdict") or "")
    return Row(
        {
            "quantity": fmt.line(part.get("quantity") or "", 200),
            "value": f"{_number(part.get('value'))} {unit}".strip(),
            "interval": _interval(part.get("low"), part.get("high")),
            "band": _band(part.get("band_low"), part.get("band_high")),
            "verdict": Cell(word, tone=TONES.get(word, "even")),
        }
    )


def _number(value: Any) -> str:
    """Return a number with four significant digits."""
    given = fmt.number(value)
    if given is None:
        return fmt.NONE
    return f"{given:,.0f}".replace(",", fmt.THIN) if abs(given) >= 10_000 else f"{given:.4g}"


def _interval(low: Any, high: Any) -> str:
    """Return an interval as text; "" if it is a single point, because all replications gave the same number."""
    if low is None or high is None or low == high:
        return ""
    return f"{_number(low)} to {_number(high)}"


def _band(low: Any, high: Any) -> str:
    """Return the range in which a quantity has to be, as text."""
    if low is None and high is None:
        return ""
    if high is None:
        return f">= {_number(low)}"
    return f"<= {_number(high)}" if low is None else f"{_number(low)} to {_number(high)}"


def _calibration(model: Analysis) -> Page:
    """Return the page about a fit: quantiles, distances, noise floor, autocorrelation, regimes, the device as TOML."""
    quantiles = _quantiles(model)
    tables = (_quality(model), _fit_table(quantiles), _lags(model), _regimes(model))
    return Page(
        Head("Calibration", _title(model, "a fit"), "model_calibration", section="Calibration"),
        (
            Section(
                "fit",
                "The fit",
                tables=tuple(one for one in tables if one.rows),
                sentences=reading.sentences(model),
            ),
            Section("toml", "For a machine", text=fmt.text(model.get("toml") or ""), text_title="The device as TOML"),
        ),
        data=lambda: data(FIT, quantiles),
    )


def _quantiles(model: Analysis) -> list[TableRow]:
    """Return one row per quantile: measured value, interval, error of the fitted table, noise floor."""
    errors, floors = (reading.dig(model, key, "quantiles") or [] for key in ("distance", "floor"))
    given = reading.entries(model, "quantiles")
    return [{**row, "error": error, "floor": floor} for row, error, floor in zip(given, errors, floors, strict=False)]


def _share(value: Any) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else f"{given:+.1%}"


def _us(value: Any) -> float | None:
    given = fmt.number(value)
    return None if given is None else given * 1e3


def _quality(model: Analysis) -> Table:
    distance, floor = (reading.dig(model, key) or {} for key in ("distance", "floor"))
    parts = (("largest gap of distributions (KS)", "ks"), ("mean gap of log quantiles (W1)", "log_w1"))
    rows = [
        {"what": words, "fit": fmt.number(distance.get(key)), "floor": fmt.number(floor.get(key))}
        for words, key in parts
    ]
    shown = columns("what:text:distance fit:plain3:table floor:plain3:half_against_half")
    return table("Fitted to the first half, tested on the second", shown, rows)


def _fit_table(quantiles: list[TableRow]) -> Table:
    rows = [
        {
            "name": f"p{(row['p'] or 0) * 100:g}",
            **{key: _us(row[key]) for key in ("us", "low", "high")},
            "error": _share(row["error"]),
            "floor": _share(row["floor"]),
        }
        for row in quantiles
    ]
    shown = columns(
        "name:text:quantile us:ns:measured low:ns:95_%_low high:ns:95_%_high error:words:table's_error floor:words"
    )
    return table("Quantiles", shown, rows)


def _lags(model: Analysis) -> Table:
    rows = [
        {"lag": fmt.count(row.get("lag")), "measured": fmt.number(row.get("measured")), "table": 0.0}
        | {"regimes": fmt.number(row.get("regimes"))}
        for row in reading.entries(model, "lags")
    ]
    shown = columns("lag:text:lag_in_requests measured:plain3 table:plain3:one_table regimes:plain3")
    return table("Autocorrelation of log latencies", shown, rows)


def _regimes(model: Analysis) -> Table:
    def made() -> Iterator[TableRow]:
        for name, row in zip(("usual", "slow"), reading.entries(model, "regimes"), strict=False):
            yield {
                "name": name,
                "share": _share(row.get("share")).lstrip("+"),
                "p50": _us(row.get("p50_us")),
                "p99": _us(row.get("p99_us")),
                "stay": (fmt.number(row.get("stay_ms")) or 0) * 1e6,
                "requests": round(fmt.number(row.get("stay_requests")) or 0),
            }

    shown = columns(
        "name:text:regime share:words:share_of_requests p50:ns p99:ns stay:ns:mean_stay"
        " requests:count:requests_in_a_stay"
    )
    return table("Regimes", shown, list(made()))
