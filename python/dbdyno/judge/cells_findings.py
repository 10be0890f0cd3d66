"""Findings of a recording of cells: one sentence each, the worst first.

Level `bad` needs attention, `doubt` limits what the recording says, `good` and `even` are facts that users will ask
for. A finding never depends on one unlucky minute: siblings are tested over rounds, and the other findings are counts
of what the cells reported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.cells.alerts import recorded_alerts
from dbdyno.cells.coverage import Coverage
from dbdyno.cells.disk_map import KINDS
from dbdyno.cells.series import MeasuredRecording
from dbdyno.judge.cells_flash import ALL
from dbdyno.judge.cells_skew import Sibling, SkewPage

SKEW_MOST = 8
NAMED_MOST = 6
ALERTS_MOST = 5
LEVELS = ("bad", "doubt", "good", "even")
BYPASS_SHARE = 0.01
"""Smallest share of redo writes bypassing the flash log that needs attention."""
_IN_ROUNDS = re.compile(r" \(in \d+ rounds\)$")
_CLOCK_NEXT = "date -u; chronyc tracking # on the cell, and here"
_SILENT_NEXT = "cellcli -e list cell attributes msStatus, cellsrvStatus"
Row = JsonObject
Objects = Sequence[tuple[str, str, str, str, float, float, float]]


def findings(
    recording: MeasuredRecording, covered: Coverage, skew: SkewPage, log: Row | None, objects: Objects
) -> list[Row]:
    """Return all findings, each with code, level, text and next step: dead cells first, the others sorted by level."""
    said = [
        *_dead(covered),
        *_clocks(covered),
        *_alerts(recording),
        *_errors(objects),
        *_configuration(recording.run),
        *_coverage(covered),
        *_skew(skew),
        *_flash_log(log),
    ]
    return sorted(said, key=lambda one: (one["code"] != "dead", LEVELS.index(one["level"])))


def _finding(code: str, level: str, text: str, step: str = "") -> Row:
    return {"code": code, "level": level, "text": text, "next": step}


def _dead(covered: Coverage) -> Iterator[Row]:
    """Report cells that returned nothing at all or stopped returning anything; they come first.

    Every number of the page excludes them.
    """
    rounds = covered["rounds"]
    for cell in covered["cells"]:
        first = _first_silent(cell["states"], covered["states"].index("no answer"))
        if first >= rounds:
            continue
        since = f"in any of {rounds} rounds" if first == 0 else f"from round {first + 1} of {rounds} to the end"
        why = f" ({_IN_ROUNDS.sub('', cell['problems'][-1])})" if cell["problems"] else ""
        after = " after that" if first else ""
        yield _finding(
            "dead",
            "bad",
            f"{cell['name']} returned nothing {since}{why}: the figures below do not include it{after}.",
            f"dbdyno cells show --hosts {cell['name']}",
        )


def _first_silent(states: Sequence[int], nothing: int) -> int:
    """Return the index of the first round after the last data; the number of rounds if the last round has data."""
    first = len(states)
    while first and states[first - 1] == nothing:
        first -= 1
    return first


def _clocks(covered: Coverage) -> Iterator[Row]:
    """Report clocks that are off; the times of such a cell match neither other cells nor this host."""
    alike: dict[tuple[str, bool], list[str]] = {}
    for cell in covered["cells"]:
        if cell["clock"]["words"]:
            alike.setdefault((cell["clock"]["words"], cell["clock"]["certain"]), []).append(cell["name"])
    for (words, certain), cells in alike.items():
        all_of = len(cells) == len(covered["cells"]) > 1
        ours = " All cells show the same difference: this machine's clock may be wrong." if all_of else ""
        moved = " Its times are shifted to match." if words.endswith("ours") and words.startswith("is") else ""
        doubt = "" if certain else ", or that cell has collected nothing for that long"
        whose = "The clock of" if len(cells) == 1 else "Each clock of"
        text = f"{whose} {_list_words(cells)} {words}{doubt}.{moved}{ours}"
        yield _finding("clock", "bad" if certain else "doubt", text, _CLOCK_NEXT)


def _alerts(recording: MeasuredRecording) -> Iterator[Row]:
    """Report the cells' alerts that are in the recording."""
    told: dict[str, list[dict[str, str]]] = {}
    for cell, alert in recorded_alerts(recording.run):
        if alert.get("severity", "").lower() != "clear":
            told.setdefault(cell, []).append(alert)
    for cell, listed in told.items():
        for alert in listed[-ALERTS_MOST:]:
            worst = alert.get("severity", "unknown severity").lower()
            words = " ".join(alert.get("alertMessage", "").split())
            over = f", over at {alert['endTime']}" if alert.get("endTime") else ""
            yield _finding(
                "alert",
                "bad" if worst in ("critical", "warning") else "doubt",
                f"{cell}: alert {alert['name']} ({worst}) at {alert.get('beginTime', 'no time')}{over}: {words}",
                alert.get("alertAction", ""),
            )
        if len(listed) > ALERTS_MOST:
            yield _finding(
                "alert", "bad", f"{cell}: {len(listed) - ALERTS_MOST} alerts before.", "cellcli -e list alerthistory"
            )


def _configuration(run: Any) -> Iterator[Row]:
    """Report cells whose configuration at the end differs from that at the start."""
    first, last = ((run.manifest.configuration or {}).get(end) or {} for end in ("first", "last"))
    for cell, now in last.items():
        changed = [
            f"{name} from {first[cell].get(name, 'nothing')!r} to {text!r}"
            for name, text in now.items()
            if cell in first and first[cell].get(name) != text
        ]
        if changed:
            yield _finding(
                "configuration", "doubt", f"{cell} was changed during the recording: {_list_words(changed)}."
            )


def _errors(objects: Objects) -> Iterator[Row]:
    """Report error counters that rose."""
    for _, name, cell, item, delta, _, _ in objects:
        if delta > 0 and "ERRS" in name.split("_"):
            yield _finding(
                "errors",
                "bad",
                f"{cell}: {name} of {item} rose by {delta:,.0f}.",
                f"cellcli -e list physicaldisk where status != normal # on {cell}",
            )


def _coverage(covered: Coverage) -> Iterator[Row]:
    rounds, nothing = covered["rounds"], covered["states"].index("no answer")
    cells = [cell for cell in covered["cells"] if _first_silent(cell["states"], nothing)]  # dead cells: see `_dead`
    began = [
        f"{cell['name']} before round {restart['round']} ({restart['how']})"
        for cell in cells
        for restart in cell["restarts"]
    ]
    if began:
        yield _finding(
            "restart",
            "bad",
            f"Counters were reset: {_list_words(began)}. Those intervals have no difference.",
            "cellcli -e list alerthistory",
        )
    for state, words in (("no answer", "nothing"), ("half an answer", "half an answer")):
        lacking = [
            f"{cell['name']} in {cell['counts'][state]}"
            f"{f' ({first})' if (first := next(iter(cell['problems']), '')) else ''}"
            for cell in cells
            if cell["counts"][state] > (rounds - _first_silent(cell["states"], nothing) if state == "no answer" else 0)
        ]
        if lacking:
            yield _finding(
                state.replace(" ", "-"), "doubt", f"Of {rounds} rounds, cells gave {words}: {_list_words(lacking)}."
            )
    late = [f"{c['name']} for {c['silent_s']:.0f} s" for c in cells if c["name"] in covered["late"]]
    if late:
        yield _finding(
            "silent",
            "doubt",
            f"Nothing new was collected: {_list_words(late)}. A cell collects once a minute; there is no "
            f"rate for that time.",
            _SILENT_NEXT,
        )
    few = [cell["name"] for cell in cells if cell["collections"] < 2]
    if few:
        yield _finding(
            "one-collection",
            "doubt",
            f"Only one collection is recorded, so there are no rates: {_list_words(few)}.",
            "dbdyno cells record --for 15min",
        )


def _list_words(words: Sequence[str]) -> str:
    more = f" and {len(words) - NAMED_MOST} more" if len(words) > NAMED_MOST else ""
    return f"{', '.join(words[:NAMED_MOST])}{more}"


def _skew(skew: SkewPage) -> Iterator[Row]:
    different = sorted((row for row in skew["rows"] if row["differs"]), key=_severity)
    groups: dict[tuple[str, str], list[Sibling]] = {}
    for row in different:
        groups.setdefault((row["metric"], row["siblings"]), []).append(row)
    groups = {key: rows for key, rows in groups.items() if not _told_otherwise(*key, groups)}
    for (metric, siblings), rows in list(groups.items())[:SKEW_MOST]:
        named = [
            f"{row['name']} ({row['ratio']:.2f} times, 95 % CI {row['low']:.2f} to {row['high']:.2f})" for row in rows
        ]
        slow = metric.endswith("_RQ") and any(row["ratio"] > 1 for row in rows)
        if len(named) > NAMED_MOST:
            named = named[:3]
        more = f" and {len(rows) - len(named)} more" if len(rows) > len(named) else ""
        count = f"{len(rows)} of {rows[0]['n_siblings']}"
        yield _finding(
            "skew",
            "bad" if slow else "doubt",
            f"{metric} differs from the median of the {siblings} on {count}: {', '.join(named)}{more}.",
        )
    left = len(groups) - SKEW_MOST
    if left > 0:
        yield _finding("skew", "doubt", f"Siblings differ in {left} more metrics; the table below has them.")
    if not skew["enough"]:
        yield _finding(
            "short",
            "doubt",
            f"{skew['rounds']} intervals are too few to compare siblings.",
            "dbdyno cells record --for 15min",
        )


def _told_otherwise(metric: str, siblings: str, groups: Mapping[tuple[str, str], Any]) -> bool:
    """Return True if another metric shows the same: requests instead of megabytes, cell disks instead of grid disks.

    A cell disk (CD) covers every grid disk (GD) on it.
    """
    head, _, rest = metric.partition("_")
    if "BY" in rest.split("_") and (f"{head}_{rest.replace('BY', 'RQ', 1)}", siblings) in groups:
        return True
    return head == "GD" and any((f"CD_{rest}", kind) in groups for kind in KINDS)


def _severity(row: Sibling) -> tuple[bool, float]:
    """Return a row's sort key: latencies come before rates, and larger differences before smaller ones."""
    return not row["metric"].endswith("_RQ"), -abs(math.log(row["ratio"]))


def _flash_log(log: Row | None) -> Iterator[Row]:
    if log is None:
        return
    whole = log["cells"][-1]
    if whole["share"] == 0:
        yield _finding("flash-first", "even", f"Disk was first in all {_count(whole['writes'])} redo writes.")
    elif whole["share"] is not None:
        basis = ", if writes were independent" if whole["interval_over"] == "writes" else ""
        span = (
            "too few rounds have such writes to compute an interval"
            if whole["low"] is None
            else f"95 % CI {_percent(whole['low'])} to {_percent(whole['high'])}{basis}"
        )
        yield _finding(
            "flash-first",
            "even",
            f"Flash was first in {_count(whole['flash_first'])} "
            f"of {_count(whole['writes'])} redo writes: {_percent(whole['share'])} "
            f"({span}).",
        )
    if whole["prevented"]:
        most = max((line for line in log["cells"] if line["cell"] != ALL), key=lambda line: line["prevented"] or 0)
        where = f", most on {most['cell']} ({_count(most['prevented'])})"
        yield _finding(
            "prevented",
            "good",
            "The flash log spared sessions "
            f"{_count(whole['prevented'])} outliers"
            f"{where if len(log['cells']) > 1 else ''}.",
        )
    if whole["actual"]:
        yield _finding(
            "outliers",
            "bad",
            f"{_count(whole['actual'])} redo writes were outliers on disk and on flash: the flash log could not help.",
        )
    yield from _passed_by(log, whole)


def _passed_by(log: Row, row: Row) -> Iterator[Row]:
    passed = {one["reason"]: sum(one["cells"].values()) for one in log["passed_by"]}
    total = math.fsum(passed.values())
    if not total:
        return
    of = row["requests"] or (row["writes"] or 0) + total
    words = "; ".join(
        f"{one['reason']} {_count(passed[one['reason']])} ({one['words']})"
        for one in sorted(log["passed_by"], key=lambda one: -passed[one["reason"]])
    )
    level = "bad" if total > BYPASS_SHARE * of else "doubt"
    yield _finding(
        "bypass",
        level,
        f"{_count(total)} of {_count(of)} redo writes ({_percent(total / of)}) bypassed the flash log: {words}.",
        "cellcli -e list iormplan detail",
    )


def _count(value: float | None) -> str:
    return f"{value or 0:,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
