"""Builder of the advice page: findings ordered by possible savings, then rules that were not judged, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.page import Cell, Finding, Head, Page, Row, Section, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, with_noun
from dbdyno.pages.reading import Analysis

_TONES: dict[str, Tone] = {"critical": "bad", "warning": "doubt", "hint": "even"}
HEADLINE_MOST = 140
"""Longest headline of a page, in characters."""
_FINDINGS = "level:verdict stake:share:at_stake finding:text"
_EVIDENCE = "what:text:evidence value:text:value place:text"
_LAYERS = "what:text:layer count each:number4 limit:number4 offered:number4:comes waits:number4 per_s:per_s:at_most"
_DEVICES = (
    "name:text:device scheduler:text nr_requests queue_depth read_ahead_kb:digits:read_ahead_kB"
    " write_cache:text under_way:number4:under_way_while_busy"
)
_WHOSE = {"recording": "the disks' time"}
_FLAT = ("number", "rule", "family", "level", "subject", "sentence", "stake", "expected", "fix", "risk", "source")


def page(model: Analysis) -> Page:
    """Return the advice page."""
    findings = reading.entries(model, "findings")
    facts = reading.dig(model, "facts") or {}
    worst = str(findings[0].get("level")) if findings else ""
    told = ", ".join(_count_words(findings, level) for level in _TONES if _has_level(findings, level))
    engine = f"{facts.get('engine') or ''} {facts.get('version') or ''}".strip()
    chips = (engine, str(facts.get("service") or ""), str(facts.get("window") or ""))
    head = Head(
        "Advice",
        fmt.line(facts.get("title") or "advice"),
        "advice_head",
        word=told or "nothing found",
        tone=_TONES.get(worst, "good"),
        headline=fmt.line(str(findings[0].get("sentence")), HEADLINE_MOST) if findings else _coverage(model),
        sentences=(f"{_coverage(model)}.",) if findings else (),
        chips=tuple(fmt.line(one, 80) for one in chips if one),
        section="Advice",
    )
    parts = tuple(_finding(one) for one in findings)
    each = Section("advice_each", "Each finding", parts=parts)
    sections = (
        _summary(findings, _WHOSE.get(str(facts.get("what")), "database time")),
        _layers(model),
        _devices(model),
        each,
        _not_judged(model),
    )
    return Page(head, sections, data=lambda: common.data(_FLAT, list(_flat(findings))))


def _has_level(findings: list[dict[str, object]], level: str) -> bool:
    return any(one.get("level") == level for one in findings)


def _count_words(findings: list[dict[str, object]], level: str) -> str:
    """Return the number of findings of a level in words: `1 critical`, `2 warnings`."""
    number = sum(one.get("level") == level for one in findings)
    return f"{number} critical" if level == "critical" else with_noun(number, level)


def _coverage(model: Analysis) -> str:
    asked = len(reading.strings(model, "clean"))
    left = len({one.get("rule") for one in reading.entries(model, "not_judged")})
    unjudged = f"{with_noun(left, 'rule') or 'no rule'} could not be judged"
    return f"{with_noun(asked, 'rule') or 'no rule'} found nothing; {unjudged}"


def _summary(findings: list[dict[str, object]], whose: str) -> Section:
    rows = []
    for one in findings:
        level = str(one.get("level"))
        rows.append(
            Row(
                {
                    "level": Cell(level, tone=_TONES.get(level, "")),
                    "finding": Cell(
                        f"{one.get('number')}. {fmt.line(one.get('sentence') or '')}{_result_text(one)}",
                        href=f"advice-{one.get('number')}",
                    ),
                    "stake": one.get("stake"),
                }
            )
        )
    lead = (
        f"At stake: the measured share of {whose} that the fix acts on; empty where it was not timed."
        " Each finding below says how much of that share the fix may save."
    )
    shown = common.table("", columns(_FINDINGS), rows, look="loose")
    return Section("advice_findings", "Findings", lead if rows else "", tables=(shown,) if rows else ())


def _layers(model: Analysis) -> Section:
    """Return a section with each layer of a storage stack from the host down: its load and its queue."""
    rows = [Row({**one, "what": fmt.line(one.get("what") or "")}) for one in reading.entries(model, "layers")]
    lead = (
        "Commands in flight at once, from the host down. Each: the limit of one part; empty where the limit keeps"
        " the parts busy. At most: commands per second by Little's law: limit / latency of an array without queueing."
    )
    shown = common.table("", columns(_LAYERS), rows, look="loose")
    return Section("advice_layers", "Layers", lead if rows else "", tables=(shown,) if rows else ())


def _devices(model: Analysis) -> Section:
    """Return the section about the host: block devices, kernel and mounts with their settings."""
    words = ("name", "scheduler", "write_cache")
    found = reading.entries(model, "devices")
    rows = [Row({**one, **{name: fmt.line(one.get(name) or "") for name in words}}) for one in found]
    lead = "Busy with: mean number of requests in flight or waiting while the device was busy, since the boot."
    shown = common.table("", columns(_DEVICES), rows, look="loose")
    values = [
        Row(
            {
                "what": fmt.line(one.get("what") or ""),
                "value": Cell(_display_value(one), unit=str(one.get("unit") or "")),
            }
        )
        for one in reading.entries(model, "host")
    ]
    kernel = common.table("", columns("what:text value:text"), values, look="loose")
    tables = ((shown,) if rows else ()) + ((kernel,) if values else ())
    return Section("advice_devices", "The host", lead if rows else "", tables=tables)


def _display_value(one: dict[str, object]) -> Any:
    """Return a value for display; text is put on one line."""
    value = one.get("value")
    return fmt.line(value, 100) if isinstance(value, str) else value


def _result_text(one: dict[str, object]) -> str:
    """Return the result of an experiment on this finding, to be appended to its sentence."""
    words = fmt.line(reading.dig(one, "proof", "words") or "")
    return f" — {words}" if words else ""


def _experiment_text(one: dict[str, object]) -> str:
    """Return what an experiment would vary or, if it has been run, what it varied and found."""
    setting, found, proposed = (
        fmt.line(reading.dig(one, "test", key) or "") for key in ("setting", "found", "proposed")
    )
    if not found:
        return ""
    words, details = (fmt.line(reading.dig(one, "proof", key) or "") for key in ("words", "details"))
    return f"{setting} {found} against {proposed}" + (f": {words}; {details}" if words else "; --plan DIR writes it")


def _finding(one: dict[str, object]) -> Section:
    rows = [
        Row(
            {
                "what": fmt.line(each.get("what") or ""),
                "value": Cell(each.get("value"), unit=str(each.get("unit") or "")),
                "place": fmt.line(each.get("place") or ""),
            }
        )
        for each in reading.entries(one, "evidence")
    ]
    level = str(one.get("level"))
    predicted = reading.dig(one, "predicted") or {}
    told = (
        ("expected", "expected"),
        ("risk", "risk"),
        ("refuted if", "refuted_by"),
        ("source", "source"),
    )
    fix = [Row({"fix": fmt.line(line)}) for line in reading.strings(one, "fix")]
    return Section(
        f"advice-{one.get('number')}",
        f"{one.get('number')}. {fmt.line(one.get('rule') or '')}",
        sentences=(
            fmt.line(one.get("sentence") or ""),
            *(f"{label}: {fmt.line(one[key])}" for label, key in told if one.get(key)),
            *_by_the_model(predicted, str(one.get("expected") or "")),
            *((f"to test: {_experiment_text(one)}",) if _experiment_text(one) else ()),
        ),
        tables=(
            common.table("", columns(_EVIDENCE), rows, look="loose"),
            *((common.table("", columns("fix:code:fix_(not_run)"), fix, look="loose"),) if fix else ()),
        ),
        word=level,
        tone=_TONES.get(level, ""),
    )


def _by_the_model(predicted: dict[str, object], said: str) -> Iterator[str]:
    """Yield a calibrated machine's prediction for a finding, unless the finding's text `said` already has it."""
    words = fmt.line(predicted.get("words") or "")
    if words and words != fmt.line(said):
        yield words


def _not_judged(model: Analysis) -> Section:
    found = reading.entries(model, "not_judged")
    by_why: dict[tuple[str, str], list[str]] = {}
    for one in found:
        key = (fmt.line(one.get("why") or ""), fmt.line(one.get("next") or ""))
        by_why.setdefault(key, []).append(fmt.line(one.get("rule") or ""))
    findings = tuple(
        Finding(f"{', '.join(dict.fromkeys(names))}: {why}", "even", next=step) for (why, step), names in by_why.items()
    )
    return Section("advice_not_judged", "Not judged", findings=findings)


def _flat(findings: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    for one in findings:
        yield {**one, "fix": "; ".join(reading.strings(one, "fix"))}
