"""Page that compares two recordings of cells: whether they are comparable, what differs, and a verdict.

Recordings of other cells, other software or another configuration are not comparable: the numbers are shown, but
nothing is decided unless the user says that this difference is under test. The model has the same form as that of every
comparison page (facts, verdict, sections with tables), plus `rows` with everything that was computed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dbdyno.base.errors import CellsError
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.collect import pattern_of
from dbdyno.cells.collection import Collection
from dbdyno.cells.configuration import Facts
from dbdyno.cells.identity import recorded_names
from dbdyno.cells.intervals import MISSING, Intervals, intervals_of
from dbdyno.cells.page import (
    ConfigurationDifference,
    PageFacts,
    PageWarning,
    RecordingHead,
    Section,
    UnusedIntervals,
    Verdict,
)
from dbdyno.cells.record import all_rounds, cells_of
from dbdyno.evidence.run import Run
from dbdyno.judge.cells_explanation import PER, explain_busier_intervals
from dbdyno.judge.cells_log import log_section, log_sentences
from dbdyno.judge.cells_parts import (
    DIFFERENT,
    TOP,
    as_dict,
    levels_section,
    list_names,
    section,
    table,
)
from dbdyno.judge.cells_rates import THRESHOLD, Row, compare

SCHEMA = 1
DRAWN = 24
CHANGE_MOST = 3.0
"""Ratio below which a change is written as a percentage."""
_UNLIKE = "cells, software or configuration differ"
_ORDER = {"worse": 0, "better": 1, "more": 2, "less": 2}
_LOST = {
    "reset": "the cell's service was restarted, or a counter fell",
    "not refreshed": "the cell had not collected again",
    MISSING: "the cell returned nothing",
}


@dataclass(frozen=True)
class Recording:
    """One side of the comparison: its name, its intervals, and the facts of its cells in the first and last round."""

    name: str
    found: Intervals
    first: Facts
    last: Facts
    silent: tuple[str, ...] = ()
    """Cells that were queried but returned nothing in any round."""

    @property
    def facts(self) -> Facts:
        """Return the facts of each cell: those at the end if they are known, otherwise those at the start."""
        return {cell: self.last.get(cell) or known for cell, known in self.first.items()}


def recordings(
    runs: tuple[Run, Run], names: tuple[str, str], *, mask: str | None = None
) -> tuple[Recording, Recording]:
    """Return two runs of kind `cells` as the two sides of a comparison.

    Raises:
        CellsError: A run has fewer than two rounds (with metrics that match `mask`).
    """
    rounds = [_rounds(run, mask) for run in runs]
    facts = [run.manifest.configuration or {} for run in runs]
    found = []
    for name, run, own, known in zip(names, runs, rounds, facts, strict=True):
        called = recorded_names(run.manifest)
        first, last = (
            {called.get(cell, cell): entry for cell, entry in known.get(end, {}).items()} for end in ("first", "last")
        )
        made = intervals_of(own)
        silent = tuple(cell for cell in cells_of(run) if cell not in made.cells)
        found.append(Recording(name, made, first, last, silent))
    return found[0], found[1]


def _rounds(run: Run, mask: str | None) -> list[Collection]:
    rounds = all_rounds(run)
    pattern = pattern_of(mask)
    if pattern is not None:
        for column in (column for one in rounds for column in one.columns):
            column.listing.readings = [r for r in column.readings if pattern.fullmatch(r.name)]
        rounds = [one for one in rounds if one.readings]
    if len(rounds) < 2:
        what = f" of metrics like {mask!r}" if mask else ""
        raise CellsError(
            f"has {len(rounds)} round{'' if len(rounds) == 1 else 's'}{what}; expected two or more for rates",
            where=str(run.path),
            next_step="record for a longer time: dbdyno cells record --for 15min",
        )
    return rounds


def compare_page(
    first: Recording,
    second: Recording,
    *,
    threshold: float = THRESHOLD,
    decide: bool = False,
    everything: bool = False,
) -> JsonObject:
    """Return the model of the comparison page.

    Args:
        first: The first recording.
        second: The second recording, which is compared with the first.
        threshold: Smallest relative difference that matters.
        decide: True to decide even if cells, software or configuration differ.
        everything: True to show also what does not differ.
    """
    unlike = differences(first, second)
    allowed = decide or not unlike
    first, second, shared = _of_both(first, second)
    rows = compare(first.found, second.found, threshold=threshold)
    if not allowed:
        rows = [replace(row, decision="not comparable") for row in rows]
    names = (first.name, second.name)
    return {
        "schema": SCHEMA,
        "kind": "cells",
        "page": "compare",
        "facts": _facts(first, second),
        "verdict": _verdict(rows, allowed),
        "why": [explain_busier_intervals(first.found, second.found, names, "" if allowed else _UNLIKE).as_dict() | PER],
        "sections": [
            _words(rows, (first, second), allowed, threshold),
            *([] if not unlike else [_configuration(unlike)]),
            *log_section(rows, names),
            *_tables(rows, everything),
            levels_section(first.found, second.found, threshold, everything),
            section(
                "lost",
                "Intervals that do not count",
                [table("", "recording:text cell:text why:text intervals", _lost_cells(first, second))],
                notes=[] if _lost_cells(first, second) else ["none: every cell has data for every interval"],
            ),
        ],
        "warnings": [*_warnings(first, second, unlike, allowed), *shared],
        "figures": {"cells_changes": _figure_rows(rows)},
        "rows": [as_dict(row) for row in rows],
    }


def _of_both(first: Recording, second: Recording) -> tuple[Recording, Recording, list[PageWarning]]:
    """Restrict both recordings to the cells that both have, with a warning if that leaves any out.

    Sums over three cells and over two would differ for that reason alone. If no cell is shared, both stay complete.
    """
    cells = [cell for cell in first.found.cells if cell in second.found.cells]
    if not cells or first.found.cells == second.found.cells:
        return first, second, []
    told = _warning(
        "cells.shared",
        f"the numbers are of the cells that both have: {', '.join(cells)}",
        "record the same cells",
    )
    kept = [replace(side, found=side.found.only(cells)) for side in (first, second)]
    return kept[0], kept[1], [told]


def _configuration(unlike: Sequence[ConfigurationDifference]) -> Section:
    return section(
        "configuration",
        "Cells, software and configuration that differ",
        [table("", "what:text cell:text first:text second:text", unlike)],
    )


def _figure_rows(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the rows of the figure: rows that combine all cells and have an interval; those that differ come first.

    Grid disks are only in the tables, because cell disks cover them.
    """
    known = [row for row in rows if not row.cell and not math.isnan(row.low) and not row.name.startswith("GD_")]
    ranked = sorted(known, key=_by_weight)[:DRAWN]
    ranked.sort(key=lambda row: (row.measure == "rate", _by_weight(row)))
    return [{**as_dict(row), "pale": row.decision not in DIFFERENT} for row in ranked]


def differences(first: Recording, second: Recording) -> list[ConfigurationDifference]:
    """Return the differences in cells, software and configuration between two recordings, and within each of them."""
    found: list[ConfigurationDifference] = []
    if first.found.cells != second.found.cells:
        found.append(
            {
                "what": "cells",
                "cell": "",
                "first": ", ".join(first.found.cells),
                "second": ", ".join(second.found.cells),
            }
        )
    for side in (first, second):
        found += [
            {"what": f"{what}, changed during {side.name}", "cell": cell, "first": a, "second": b}
            for cell, what, a, b in _unlike(side.first, side.last)
        ]
    return found + [
        {"what": what, "cell": cell, "first": a, "second": b} for cell, what, a, b in _unlike(first.facts, second.facts)
    ]


def _unlike(first: Facts, second: Facts) -> Iterable[tuple[str, str, str, str]]:
    for cell in first.keys() & second.keys():
        for what in sorted(first[cell].keys() | second[cell].keys()):
            values = [side[cell].get(what, "none") for side in (first, second)]
            if values[0] != values[1]:
                yield cell, what, values[0], values[1]


def _facts(first: Recording, second: Recording) -> PageFacts:
    release = {known.get("cell.releaseVersion", "") for known in second.facts.values()}
    return {
        "title": f"{second.name} against {first.name}",
        "engine": "storage cells",
        "version": ", ".join(sorted(release - {""})),
        "first": _end(first),
        "last": _end(second),
    }


def _end(side: Recording) -> RecordingHead:
    at = datetime.fromtimestamp(side.found.first_ns / 1e9, UTC).isoformat()
    cells = len(side.found.cells)
    count = side.found.count
    spans = f"{count} × {side.found.mean_s:.3g} s" if count else "no interval that counts"
    note = f"{spans}, {cells} cell{'' if cells == 1 else 's'}"
    return {"number": side.name, "at": at, "note": note}


def _verdict(rows: Sequence[Row], allowed: bool) -> Verdict:
    """Return the verdict based on the rows that combine all cells."""
    if not allowed:
        return {"word": "not comparable", "why": _UNLIKE}
    whole = sorted((row for row in rows if not row.cell), key=_by_weight)
    for word in ("worse", "better"):
        named = [row for row in whole if row.decision == word]
        if named:
            return {"word": word, "why": _leading_change(named, f"{word} over all cells")}
    moved = [row for row in whole if row.decision in DIFFERENT]
    if moved:
        return {"word": "different", "why": _leading_change(moved, "different over all cells")}
    if all(math.isnan(row.p) for row in whole):
        return {"word": "cannot tell", "why": "too few rounds to test anything"}
    return {"word": "ok", "why": "no certain difference over all cells"}


def _leading_change(rows: Sequence[Row], what: str) -> str:
    """Return a sentence that says by how much the first row changed, and how many others changed as well."""
    first, others = rows[0], len(rows) - 1
    ratios = [first.ratio, first.low, first.high]
    if all(0 < ratio < CHANGE_MOST for ratio in ratios):
        change, low, high = (f"{100 * (ratio - 1):+.3g}" for ratio in ratios)
        size = f"{change} % (95 % CI {low} to {high} %)"
    else:
        size = f"{first.ratio:.3g} times (95 % CI {first.low:.3g} to {first.high:.3g})"
    return f"{first.label} is {what}: {size}" + (f"; {others} more" if others else "")


def _words(rows: Sequence[Row], sides: tuple[Recording, Recording], allowed: bool, threshold: float) -> Section:
    """Return the section with the verdict in sentences."""
    whole = [row for row in rows if not row.cell]
    tested = [row for row in whole if not math.isnan(row.p)]
    found = [row for row in whole if row.decision in DIFFERENT]
    parts = [row for row in rows if row.cell and row.decision in DIFFERENT]
    told = log_sentences(rows, (sides[0].name, sides[1].name))
    if allowed:
        kinds = [f"{n} {word}" for word in DIFFERENT if (n := _count(found, word))]
        told.append(
            f"Over all cells, {len(found)} of {len(tested)} testable metrics differ"
            + (f": {', '.join(kinds)}." if kinds else ".")
        )
        told.append(f"{len(parts)} values of single cells and objects differ.")
    else:
        told.append("Not comparable: the figures are shown without a verdict.")
    return section(
        "words",
        "In words",
        notes=told,
        about="Each interval between two collections is one observation: events inside may depend on each other, and "
        "similar neighbouring intervals widen the confidence intervals. q: p after "
        "false-discovery control (5 %). Differences within"
        f" {threshold * 100:.3g} % count as none.",
    )


def _count(rows: Sequence[Row], word: str) -> int:
    return sum(row.decision == word for row in rows)


_COLUMNS = (
    "metric:text decision:text ratio:change:change low:change:from high:change:to"
    " first:number second:number q:p second_larger:ratio:second_larger"
)


def _tables(rows: Sequence[Row], everything: bool) -> list[Section]:
    """Return the tables of latencies and rates over all cells, then of single cells and objects."""
    whole = [row for row in rows if not row.cell and row.measure != "share"]
    made = []
    for measure, title in (("latency", "Latencies, over all cells"), ("rate", "Rates per second, over all cells")):
        own = [row for row in whole if row.measure == measure]
        made.append(_measured_section(measure, title, own, everything))
    made.append(_objects([row for row in rows if row.cell]))
    return made


def _objects(rows: Sequence[Row]) -> Section:
    """Return a table of single cells and objects that differ: one line per metric and decision.

    Each line shows the object whose difference is most certain, because often a whole rack changes at once. The model's
    `rows` contain all of them.
    """
    tested = Counter(row.label for row in rows if not math.isnan(row.p))
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=_by_weight):
        if row.decision in DIFFERENT:
            groups.setdefault((row.label, row.decision), []).append(row)
    told = [
        {
            **as_dict(own[0]),
            "many": f"{len(own)} of {tested[label]}",
            "surest": f"{own[0].cell} {own[0].object}".strip(),
        }
        for (label, _), own in groups.items()
    ]
    columns = _COLUMNS.replace("decision:text", "decision:text many:text surest:text")
    number = sum(len(own) for own in groups.values())
    return section(
        "objects",
        "Single cells and objects that differ",
        [table("", columns, told, top=TOP)],
        about="one line per metric: how many of the testable ones differ, and the figures of the most certain one"
        if told
        else "",
        notes=[f"{number} of {tested.total()} testable ones"],
    )


def _measured_section(name: str, title: str, rows: Sequence[Row], everything: bool) -> Section:
    moved = [row for row in rows if row.decision != "none in either"]
    shown = moved if everything else [row for row in moved if row.decision in DIFFERENT]
    if not shown and moved and not everything:  # nothing differs: show the busiest
        shown = sorted(moved, key=lambda row: -row.b.moved)[:5]
    left = len(moved) - len(shown)
    still = len(rows) - len(moved)
    notes = [f"{left} more without a certain difference (--all shows them)"] if left else []
    notes += [f"{still} moved in neither"] if still else []
    told = table("", _COLUMNS, [as_dict(row) for row in sorted(shown, key=_by_weight)])
    return section(name, title, [told], notes=notes)


def _by_weight(row: Row) -> tuple[int, float, float]:
    """Return the sort key of a row: rows that differ come first, and within each decision the most certain ones."""
    q = row.q if not math.isnan(row.q) else 2.0
    change = 0.0 if math.isnan(row.ratio) else -abs(math.log(row.ratio))
    return _ORDER.get(row.decision, 3), q, change


def _lost_cells(first: Recording, second: Recording) -> list[UnusedIntervals]:
    return [
        {"recording": side.name, "cell": cell, "why": _LOST.get(why, why), "intervals": count}
        for side in (first, second)
        for (cell, why), count in sorted(side.found.lost.items())
    ]


def _warnings(
    first: Recording, second: Recording, unlike: Sequence[ConfigurationDifference], allowed: bool
) -> list[PageWarning]:
    from dbdyno.stats.ratios import ROUNDS_LEAST

    found = [
        _warning(
            "cells.dead",
            f"{list_names(side.silent)} returned nothing in any round of {side.name}: no figure here includes it",
            f"dbdyno report {side.name}",
        )
        for side in (first, second)
        if side.silent
    ]
    if unlike and not allowed:
        names = list_names(list(dict.fromkeys(str(row["what"]) for row in unlike)))
        found.append(
            _warning(
                "cells.not_comparable",
                f"not comparable: {names} differ",
                "if that is the change under test, add --accept-differences",
            )
        )
    for side in (first, second):
        if side.found.count < ROUNDS_LEAST:
            found.append(
                _warning(
                    "cells.few",
                    f"{side.name} has {side.found.count} intervals: too few for a verdict, which needs {ROUNDS_LEAST}",
                    "record for a longer time: dbdyno cells record --for 15min",
                )
            )
        if set(side.found.cells) - set(side.facts):
            found.append(
                _warning(
                    "cells.unknown",
                    f"{side.name} has no facts about its cells (software, configuration), so it is "
                    f"not known whether they changed",
                    "use dbdyno cells record, which stores them",
                )
            )
    found.append(
        _warning(
            "cells.not_interleaved",
            "The two were recorded at different times: anything else that differed, above all the load, "
            "counts as a difference.",
            "if the load can be repeated, switch in short turns: dbdyno run flash-log",
        )
    )
    return found


def _warning(code: str, text: str, step: str) -> PageWarning:
    return {"code": code, "text": text, "next": step}
