"""Report of a recording of cells: the numbers, sentences and chart data that its page shows.

Sections follow the questions of an administrator: what is unusual, what was recorded on which cells, the flash log, the
flash cache, each disk, every family of metrics over time, and which sibling differs. Renderers add nothing.

Limits: a cell reports once a minute, so nothing shorter than a minute is visible. Times come from the cells' own
clocks. Charts of long recordings show means of several steps; tables and findings do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Table, column, columns, page_only_column, table
from dbdyno.cells.coverage import Coverage, configuration_table, coverage
from dbdyno.cells.disk_map import disk_maps, disk_table
from dbdyno.cells.page import DiskMap, Verdict
from dbdyno.cells.panels import panels
from dbdyno.cells.series import MeasuredRecording, open_series
from dbdyno.judge import cells_flash as report_flash
from dbdyno.judge.cells_explanation import PER, explain_busy, work_of_recording
from dbdyno.judge.cells_findings import findings
from dbdyno.judge.cells_skew import THRESHOLD, Sibling, SkewPage, skew_page

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run

SCHEMA = 1
COLUMNS_MOST = 6
"""Largest number of cells that get a column each; for more cells, the columns are `least`, `mean` and `most`."""
Row = JsonObject


def report_page(run: Run, *, threshold: float = THRESHOLD) -> JsonObject:
    """Return the model of a recording's report.

    `threshold` is the smallest difference between siblings that matters, as a share.

    Raises:
        CellsError: The recording has no metrics of cells.
    """
    with open_series(run) as found:
        covered = coverage(found)
        skew = skew_page(found.siblings(), found.intervals, threshold=threshold)
        log, cache = report_flash.flash_log(found), report_flash.flash_cache(found)
        objects = found.objects()
        maps = disk_maps(found.cells, objects)
        said = findings(found, covered, skew, log, objects)
        return {
            "schema": SCHEMA,
            "kind": "cells",
            "page": "report",
            "facts": _facts(found, covered),
            "verdict": _verdict(said),
            "findings": said,
            "why": [explain_busy(work_of_recording(found), skew["rows"]).as_dict() | PER],
            "coverage": covered,
            "flash_log": log,
            "flash_cache": cache,
            "families": [
                {"name": name, "slug": _slug(name), "panels": drawn}
                for name in found.families()
                if (drawn := panels(found, name))
            ],
            "disks": maps,
            "skew": skew,
            "sections": _sections(found, covered, log, cache, maps, skew),
        }


class _Facts(TypedDict):
    """Facts at the head of the page."""

    title: str
    run: str
    cells: list[str]
    rounds: int
    every_s: float | None
    status: str
    began: str
    ended: str
    seconds: float


def _facts(recording: MeasuredRecording, covered: Coverage) -> _Facts:
    run = recording.run
    return {
        "title": f"{run.id}: {len(recording.cells)} cell{'s' * (len(recording.cells) != 1)}",
        "run": run.id,
        "cells": recording.cells,
        "rounds": covered["rounds"],
        "every_s": run.manifest.every_s,
        "status": run.status,
        "began": _moment(recording.began_ns),
        "ended": _moment(recording.ended_ns),
        "seconds": (recording.ended_ns - recording.began_ns) / 1e9,
    }


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, UTC).isoformat()


def _verdict(said: Sequence[Row]) -> Verdict:
    """Return the verdict: whether there are findings that need attention."""
    number = sum(one["level"] == "bad" for one in said)
    if number:
        first = next(str(one["text"]) for one in said if one["level"] == "bad").rstrip(".")
        return {"word": "look", "why": first + (f"; {number - 1} more to check" if number > 1 else "")}
    doubts = sum(one["level"] == "doubt" for one in said)
    if doubts:
        return {"word": "to know", "why": f"{doubts} finding{'s' * (doubts > 1)} to note"}
    return {"word": "ok", "why": "nothing stands out"}


def _sections(
    recording: MeasuredRecording,
    covered: Coverage,
    log: Row | None,
    cache: Row | None,
    maps: list[DiskMap],
    skew: SkewPage,
) -> list[Row]:
    own = {"flash log": report_flash.log_section(log), "flash cache": report_flash.cache_section(cache)}
    sections = [
        {
            "name": "recorded",
            "title": "What was recorded",
            "figures": ["cells_rounds"],
            "about": covered["about"],
            "tables": [covered["table"], *configuration_table(recording.run)],
            "notes": covered["notes"],
        },
    ]
    families = recording.families()
    for name in families:
        tables, notes, about = [], [], ""
        if (first := own.get(name)) is not None:
            tables, notes, about = [*first["tables"]], first["notes"], first["about"]
        table = _table(recording, name)
        if table["rows"]:
            tables.append(table)
        if tables:
            sections.append(
                {
                    "name": _slug(name),
                    "title": name[0].upper() + name[1:],
                    "about": about,
                    "figures": [f"cells_{_slug(name)}"],
                    "tables": tables,
                    "notes": notes,
                }
            )
    if maps:
        sections.insert(
            1 + len([n for n in families if n in own]),
            {
                "name": "disks",
                "title": "Disk by disk",
                "tables": [disk_table(maps)],
                "notes": [],
                "figures": [f"cells_map_{_slug(kind)}" for kind in dict.fromkeys(m["kind"] for m in maps)],
                "about": "Means over the recording. Each disk is compared with the median of its kind.",
            },
        )
    sections.append(_skew_section(skew))
    return sections


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower())


def _table(recording: MeasuredRecording, family: str) -> Table:
    """Return a table of a family's measures with their means over the recording, without measures that are always 0."""
    wide = len(recording.cells) > COLUMNS_MOST
    heads = ["least", "mean", "most"] if wide else recording.cells
    rows: list[Row] = []
    for measure in recording.family(family):
        if not measure.is_nonzero:
            continue
        values = [measure.mean(cell) for cell in recording.cells]
        own = _spread(values) if wide else values
        rows.append(
            {
                "metric": measure.name,
                "unit": measure.unit,
                "meaning": measure.meaning,
                "all": measure.overall(),
                **{f"c{at}": value for at, value in enumerate(own)},
            }
        )
    headings = [
        *columns("metric:text all:quantity:all_cells"),
        *(column(f"c{at}", "quantity", head) for at, head in enumerate(heads)),
        page_only_column(column("meaning", "text")),
    ]
    return table("Means over the recording", headings, rows)


def _spread(values: Sequence[float | None]) -> list[float | None]:
    known = [value for value in values if value is not None]
    return [min(known), sum(known) / len(known), max(known)] if known else [None] * 3


def _skew_section(skew: SkewPage) -> Row:
    different = [row for row in skew["rows"] if row["differs"]]
    percent = f"{100 * skew['threshold']:g} %"
    if not skew["enough"]:
        about = f"{skew['rounds']} intervals are recorded; 4 are needed to test anything."
    else:
        about = (
            f"{len(different)} of {skew['tested']} siblings differ by more than {percent} from the"
            " median of their kind. Mean log ratio over the rounds, Student's t, false discoveries"
            " held to 5 % (Benjamini and Hochberg)."
        )
    return {
        "name": "skew",
        "title": "Siblings that differ",
        "about": about,
        "notes": [],
        "figures": ["cells_skew"],
        "tables": [skew_table(different)] if different else [],
    }


def skew_table(rows: Sequence[Sibling]) -> Table:
    """Return siblings as a table: name, ratio to the median, interval and q."""
    shown = columns(
        "which:text metric:text of:text:siblings ratio:times:times_the_median low:times:95_%_from high:times:to"
        " rounds q:p"
    )
    made = [
        {
            "metric": row["metric"],
            "ratio": row["ratio"],
            "low": row["low"],
            "high": row["high"],
            "rounds": row["rounds"],
            "q": row["q"],
            "which": row["name"],
            "of": f"{row['n_siblings']} {row['siblings']}",
        }
        for row in rows
    ]
    return table("", shown, made)
