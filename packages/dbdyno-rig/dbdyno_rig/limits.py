"""CREATE, ALTER and DROP THRESHOLD, ALTER and DROP ALERTHISTORY of a modelled cell.

Examples are `create threshold FL_EFFICIENCY_PERCENTAGE comparison='<', warning=99` and
`alter alerthistory 1_1 examinedBy=anna`.
"""

from __future__ import annotations

from dataclasses import replace

from dbdyno.cells.numbers import number_and_unit
from dbdyno_rig.alerts import COMPARISONS, Threshold
from dbdyno_rig.language import Change, RefusedError, raise_syntax_error, refusal, text_of
from dbdyno_rig.state import CellState

_LIMITS = ("warning", "critical")
_COUNTS = ("occurrences", "observation")


def create_threshold(cell: CellState, change: Change) -> str:
    """Create a threshold for a metric, or for one object of that metric, and return what CellCLI prints."""
    if len(change.words) != 1 or "comparison" not in change.options:
        raise_syntax_error()
    name = change.words[0]
    if any(one.name.lower() == name.lower() for one in cell.alerts.thresholds()):
        raise refusal(f"threshold {name} exists")
    threshold = _change_threshold(Threshold(name, ">"), change)
    if not any(threshold.covers(row) for row in cell.rack.samples[cell.number][-1].rows):
        raise RefusedError(2007, f"metric does not exist: {name}")
    cell.alerts.set_threshold(threshold)
    return f"Threshold {name} successfully created\n"


def alter_threshold(cell: CellState, change: Change) -> str:
    """Change the limits of thresholds, restart the counts of their occurrences, and return what CellCLI prints."""
    if not change.options:
        raise_syntax_error()
    altered = [_change_threshold(one, change) for one in _named_thresholds(cell, change)]
    for one in altered:
        cell.alerts.set_threshold(one)
    return "".join(f"Threshold {one.name} successfully altered\n" for one in altered)


def drop_threshold(cell: CellState, change: Change) -> str:
    """Drop thresholds, end their alerts, and return what CellCLI prints."""
    if change.options:
        raise_syntax_error()
    gone = _named_thresholds(cell, change)
    cell.alerts.drop_thresholds([one.name for one in gone])
    return "".join(f"Threshold {one.name} successfully dropped\n" for one in gone)


def alter_alerts(cell: CellState, change: Change) -> str:
    """Record who has examined alerts, and return what CellCLI prints."""
    if set(change.options) != {"examinedby"}:
        raise_syntax_error()
    known = [alert.name for alert in cell.alerts.entries()]
    names = known if _means_all(change) else list(change.words)
    _need("alerthistory", names, known)
    cell.alerts.mark_examined(names, text_of(change.options["examinedby"]))
    return "".join(f"Alert {name} successfully altered\n" for name in names)


def drop_alerts(cell: CellState, change: Change) -> str:
    """Delete the alerts that have ended, and return what CellCLI prints."""
    if not _means_all(change) or change.options:
        raise_syntax_error()
    before = [alert.name for alert in cell.alerts.entries()]
    cell.alerts.delete_ended()
    kept = {alert.name for alert in cell.alerts.entries()}
    return "".join(f"Alert {name} successfully dropped\n" for name in before if name not in kept)


def _means_all(change: Change) -> bool:
    return [word.lower() for word in change.words] == ["all"]


def _named_thresholds(cell: CellState, change: Change) -> list[Threshold]:
    known = {one.name.lower(): one for one in cell.alerts.thresholds()}
    if _means_all(change):
        return list(known.values())
    _need("threshold", [word.lower() for word in change.words], list(known))
    return [known[word.lower()] for word in change.words]


def _need(kind: str, names: list[str], known: list[str]) -> None:
    if not names:
        raise_syntax_error()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise RefusedError(2007, f"{kind} does not exist: {', '.join(unknown)}")


def _change_threshold(threshold: Threshold, change: Change) -> Threshold:
    """Return the threshold with the attributes that a command sets; raise an error for invalid values."""
    for key, value in change.options.items():
        text = text_of(value)
        if key == "comparison":
            if text not in COMPARISONS:
                raise_syntax_error()
            threshold = replace(threshold, comparison=text)
            continue
        number = number_and_unit(text)
        if number is None or number[1] or key not in (*_LIMITS, *_COUNTS):
            raise_syntax_error()
        if key == "warning":
            threshold = replace(threshold, warning=number[0])
        elif key == "critical":
            threshold = replace(threshold, critical=number[0])
        else:
            if not (text.isdigit() and 1 <= int(text) <= 1_000):
                raise_syntax_error()
            threshold = (
                replace(threshold, occurrences=int(text))
                if key == "occurrences"
                else replace(threshold, observation=int(text))
            )
    if threshold.warning is None and threshold.critical is None:
        raise_syntax_error()
    return threshold
