"""Flash log and flash cache of a recording, by cell and over all cells.

The interval of the share of writes for which flash was first is computed over rounds (`stats.ratios`, as in the
comparison of two recordings), because writes of one minute depend on each other. If the rounds yield no interval,
Wilson's interval over single writes is used, which is too narrow. The page says which of the two it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Heading, Table, column, columns, table
from dbdyno.cells.catalogue import metric
from dbdyno.cells.diff import share_interval
from dbdyno.cells.series import MeasuredRecording, Step

ALL = "all cells"
SKIP = "FL_IO_W_SKIP_"
_LOG = {
    "writes": "FL_IO_W",
    "disk_first": "FL_DISK_FIRST",
    "flash_first": "FL_FLASH_FIRST",
    "prevented": "FL_PREVENTED_OUTLIERS",
    "actual": "FL_ACTUAL_OUTLIERS",
    "flash_only": "FL_FLASH_ONLY_OUTLIERS",
    "requests": "FL_RQ_W",
}
_CACHE = {
    "hits": "FC_IO_RQ_R",
    "misses": "FC_IO_RQ_R_MISS",
    "passed_reads": "FC_IO_RQ_R_SKIP",
    "writes": "FC_IO_RQ_W",
    "first": "FC_IO_RQ_W_FIRST",
    "overwrite": "FC_IO_RQ_W_OVERWRITE",
    "populate": "FC_IO_RQ_W_POPULATE",
    "passed_writes": "FC_IO_RQ_W_SKIP",
}
Row = JsonObject


def flash_log(recording: MeasuredRecording) -> Row | None:
    """Return counts and shares of the flash log by cell and over all cells; None if no redo write was seen."""
    lines = _count_rows(recording, "flash log", _LOG)
    if not any(line["writes"] or line["requests"] for line in lines):
        return None
    share = recording.get("flash log", "flash first")
    for line in lines:
        own = share.cells if share else {}
        steps = _by_round(own) if line["cell"] == ALL else own.get(line["cell"], [])
        line.update(share_of(steps))
        both = (line["disk_first"], line["flash_first"])
        line["identity_holds"] = None in both or line["writes"] in (None, sum(both))
    reasons = [m for m in recording.family("flash log") if m.name.startswith(SKIP) and m.is_nonzero]
    passed = [
        {
            "reason": m.name.removeprefix(SKIP),
            "words": metric(m.name).meaning.rpartition(": ")[2],
            "cells": {cell: m.total(cell) for cell in recording.cells},
        }
        for m in reasons
        if m.kind == "rate" and not m.name.endswith("_MIN")
    ]
    return {"cells": lines, "passed_by": passed}


def flash_cache(recording: MeasuredRecording) -> Row | None:
    """Return hits, misses and writes of the flash cache by cell and over all cells; None if the cache did nothing."""
    lines = _count_rows(recording, "flash cache", _CACHE)
    if not any(line["hits"] or line["misses"] or line["writes"] for line in lines):
        return None
    for line in lines:
        reads = (line["hits"] or 0) + (line["misses"] or 0)
        line["hit_ratio"] = (line["hits"] or 0) / reads if reads else None
        kinds = [line["first"], line["overwrite"], line["populate"]]
        known = [kind for kind in kinds if kind is not None]
        line["identity_holds"] = len(known) < 3 or line["writes"] in (None, sum(known))
        for key, name in (("used", "FC_BY_USED"), ("dirty", "FC_BY_DIRTY")):
            gauge = recording.get("flash cache", name)
            cells = recording.cells if line["cell"] == ALL else [line["cell"]]
            last = [gauge.cells[c][-1][2] for c in cells if c in gauge.cells] if gauge else []
            line[key] = math.fsum(last) if last else None
    return {"cells": lines}


def _count_rows(recording: MeasuredRecording, family: str, names: dict[str, str]) -> list[Row]:
    """Return for each cell by how much each counter rose (None if it was never seen), then the sums over all cells."""
    lines: list[Row] = []
    for cell in recording.cells:
        line: Row = {"cell": cell}
        for key, name in names.items():
            own = recording.get(family, name)
            line[key] = own.total(cell) if own and own.cells.get(cell) else None
        lines.append(line)
    whole: Row = {"cell": ALL}
    for key in names:
        known = [line[key] for line in lines if line[key] is not None]
        whole[key] = math.fsum(known) if known else None
    return [*lines, whole] if len(lines) > 1 else lines


def _by_round(cells: dict[str, list[Step]]) -> list[Step]:
    """Add up the first steps of all cells, then all second steps and so on, because their times differ by cell."""
    longest = max((len(own) for own in cells.values()), default=0)
    found = []
    for at in range(longest):
        here = [own[at] for own in cells.values() if at < len(own)]
        found.append((here[0][0], here[0][1], sum(s[2] for s in here), sum(s[3] for s in here)))
    return found


def share_of(steps: Sequence[Step]) -> Row:
    """Return a share (sum of the steps' parts / sum of their totals), its 95 % interval, and the basis of the interval.

    The basis is 'rounds' or 'writes'. If too few rounds have a part above 0, the basis is 'burst' and there is no
    interval. All values are None if there were no writes.
    """
    from dbdyno.stats.ratios import ROUNDS_LEAST, ratio_of

    used = [step for step in steps if step[3]]
    if not used:
        return {"share": None, "low": None, "high": None, "interval_over": None}
    found = ratio_of([step[2] for step in used], [step[3] for step in used], share=True)
    own = found.interval() if len(used) >= ROUNDS_LEAST else None
    if own is not None and found.above < found.below:
        low, high = own
        return {"share": found.value, "low": low, "high": min(high, 1.0), "interval_over": "rounds"}
    if len(used) >= ROUNDS_LEAST and 0 < found.above < found.below:
        return {"share": found.value, "low": None, "high": None, "interval_over": "burst"}
    low, high = share_interval(found.above, found.below)
    low, high = (low if found.above else 0.0), (high if found.above < found.below else 1.0)
    return {"share": found.value, "low": low, "high": high, "interval_over": "writes"}


def log_section(log: Row | None) -> Row | None:
    """Return the flash log's tables and notes as a page section; None if there were no writes."""
    if log is None:
        return None
    over = {line["interval_over"] for line in log["cells"]} - {None}
    words = {
        "rounds": "over the rounds",
        "writes": "Wilson's, as if writes were independent",
        "burst": "left out if too few rounds contain nearly all of these writes",
    }
    about = "95 % intervals of the share are " + " or ".join(words[o] for o in sorted(over)) + "."
    tables = [_log_table(log)]
    if log["passed_by"]:
        tables.append(_passed_table(log))
    broken = [line["cell"] for line in log["cells"] if not line["identity_holds"]]
    notes = [
        f"{cell}: disk first + flash first differs from FL_IO_W; the counters were read at different moments."
        for cell in broken
    ]
    return {"about": about if over else "", "tables": tables, "notes": notes}


def _log_table(log: Row) -> Table:
    heads = columns(
        "cell:text writes:count:redo_writes disk_first:count:disk_first flash_first:count:flash_first"
        " share:ratio:share_of_flash_first low:ratio:95_%_from high:ratio:to prevented:count:outliers_prevented"
        " actual:count:outliers_on_both flash_only:count:outliers_on_flash_only"
    )
    return _page_table("Who was first", heads, log["cells"])


def _passed_table(log: Row) -> Table:
    cells = list(log["passed_by"][0]["cells"])
    wide = len(cells) > 6
    shown = [] if wide else [column(cell) for cell in cells]
    heads = [column("reason", "text"), column("all", label=ALL), *shown, column("words", "text", "meaning")]
    rows = [
        {
            "reason": one["reason"],
            "words": one["words"],
            "all": sum(one["cells"].values()),
            **({} if wide else one["cells"]),
        }
        for one in log["passed_by"]
    ]
    return _page_table("Redo writes that bypassed the flash log", heads, rows)


def cache_section(cache: Row | None) -> Row | None:
    """Return the flash cache's table and notes as a page section; None if the cache did nothing."""
    if cache is None:
        return None
    heads = columns(
        "cell:text hit_ratio:ratio:hits hits:count:reads_answered misses passed_reads:count:reads_bypassing_it writes"
        " first overwrite populate passed_writes:count:writes_bypassing_it used:mb:used_at_the_end"
        " dirty:mb:not_yet_on_disk"
    )
    notes = [
        f"{line['cell']}: first + overwrite + populate is not FC_IO_RQ_W."
        for line in cache["cells"]
        if not line["identity_holds"]
    ]
    return {
        "about": "Hits are answered read requests, as a share of hits and misses. Writes are first writes, overwrites, "
        "and writes that filled the cache after a read.",
        "tables": [_page_table("What it answered and stored", heads, cache["cells"])],
        "notes": notes,
    }


def _page_table(title: str, heads: list[Heading], rows: Sequence[Row]) -> Table:
    """Return a page table with only those columns in which at least one row has a value."""
    shown = [head for head in heads if any(row.get(head["name"]) is not None for row in rows)]
    return table(title, shown, [{head["name"]: row.get(head["name"]) for head in shown} for row in rows])
