"""Analysis of the log writers of a run on this host: what they wrote, the times of each path, the race.

It adds `logs` to the analysis model, and also the verdict if the run only probes a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.contract.parts import LogPath, LogRace, LogRow, Writes
from dbdyno.study.analysis.contract.rows import Caution, Model, VerdictRow
from dbdyno.study.analysis.measured.measures import QUANTILES, Measures

PATHS = ("first path", "second path")
RACE = {
    "races": "FL_IO_W",
    "first": "FL_DISK_FIRST",
    "second": "FL_FLASH_FIRST",
    "skipped_busy": "FL_IO_W_SKIP_BUSY",
    "held_back": "writes held back",
    "prevented_outliers": "FL_PREVENTED_OUTLIERS",
    "second_only_outliers": "FL_FLASH_ONLY_OUTLIERS",
    "actual_outliers": "FL_ACTUAL_OUTLIERS",
}


def add(model: Model, connection: Any, measures: Measures, run: Run) -> None:
    """Add `logs` to the model, one entry per arm, and also the verdict if the run only probes a log."""
    blocks = [block.index for block in measures.arms[0].blocks]
    waits = _waits(connection, blocks)
    counts = _counts(connection, blocks)
    model["logs"] = [_log(at, given, waits, counts) for at, given in enumerate(run.manifest.logs)]
    if model["kind"] == "probe":
        model["verdict"] = _verdict(model)
    else:
        for log in model["logs"]:
            model["verdict"]["sentences"] += race_sentences(log)
        model["verdict"]["sentences"].append(_cost(model["logs"]))


def warnings(run: Run) -> Iterator[Caution]:
    """Yield a warning about each problem with the conditions of a probe, with its next step."""
    for log in run.manifest.logs:
        name = log["name"]
        if log["same_device"]:
            yield {
                "code": "one device",
                "text": f"both paths of {name} are on {log['same_device']}: the copies share one "
                "device, so a slow device delays both",
                "next": "name paths on two devices",
            }
        if log["sync"] == "direct":
            yield {
                "code": "not durable",
                "text": f"{name} writes only with direct: a device with a volatile cache may lose acknowledged writes",
                "next": "use --sync direct+dsync, which flushes the device's cache",
            }


def _waits(connection: Any, blocks: list[int]) -> dict[tuple[str, str], Writes]:
    """Return the durations of `log file parallel write` by arm and by the process or path that waited."""
    rows = connection.execute(
        "select arm, object, count(*), avg(elapsed_ns), max(elapsed_ns),"
        " quantile_cont(elapsed_ns, $levels) from waits"
        " where event = 'log file parallel write' and block in (select unnest($blocks::int[]))"
        " group by all",
        {"levels": list(QUANTILES.values()), "blocks": blocks},
    ).fetchall()
    return {
        (arm, who): {
            "writes": count,
            "mean_ns": mean,
            "max_ns": most,
            "quantiles_ns": dict(zip(QUANTILES, quantiles, strict=True)),
        }
        for arm, who, count, mean, most, quantiles in rows
    }


def _counts(connection: Any, blocks: list[int]) -> dict[tuple[str, str, str], float]:
    """Return the growth of counters, and the maximum of gauges, over these blocks by (arm, object, metric)."""
    rows = connection.execute(
        "with b as (select arm, object, metric, kind, block, max(value) as most,"
        " max(value) - min(value) as grown from metrics where source = 'probe'"
        " and block in (select unnest($1::int[])) group by all)"
        " select arm, object, metric, case when kind = 'gauge' then max(most) else sum(grown) end"
        " from b group by arm, object, metric, kind",
        [blocks],
    ).fetchall()
    return {(arm, thing, metric): value for arm, thing, metric, value in rows}


def _log(
    at: int,
    given: JsonObject,
    waits: dict[tuple[str, str], Writes],
    counts: dict[tuple[str, str, str], float],
) -> LogRow:
    name = given["name"]

    def count(thing: str, metric: str) -> int:
        return int(counts.get((name, thing, metric), 0))

    writes, commits = count("lgwr", "redo writes"), count("lgwr", "commits")
    paths: list[LogPath] = [
        {
            "path": who,
            "file": file,
            **waits.get((name, who), {}),
            "bytes": count(who, "bytes written"),
            "outliers": count(who, "outliers"),
            "farthest_behind_bytes": count(who, "farthest behind"),
        }
        for who, file in zip(PATHS, given["paths"], strict=False)
    ]
    raced = given["rule"] == "first"
    return {
        "arm": at,
        "commits": commits,
        "writes": writes,
        "commits_per_write": commits / writes if writes else None,
        "redo_bytes": count("lgwr", "redo size"),
        "wasted_bytes": count("lgwr", "redo wastage"),
        "laps": count("lgwr", "laps"),
        "write": waits.get((name, "lgwr"), {}),
        "paths": paths,
        "race": cast("LogRace", {key: count("race", metric) for key, metric in RACE.items()}) if raced else None,
        "outlier_ns": given["outlier_ns"],
        "cost_ns": given["cost"]["write_ns"],
    }


def _verdict(model: Model) -> VerdictRow:
    """Return the verdict on a probe of one log, in sentences."""
    from dbdyno.stats.wording import duration

    arm, log = model["arms"][0], model["logs"][0]
    if not arm["ops"]:
        return {"decision": "unclear", "headline": "No commit was acknowledged.", "sentences": []}
    quantiles = arm["quantiles_ns"]
    sessions = f"{arm['sessions']} session" + ("" if arm["sessions"] == 1 else "s")
    headline = (
        f"A commit takes {duration(quantiles['p50'])} at the median, {duration(quantiles['p99'])} "
        f"at p99; {arm['throughput_per_s']:,.0f} a second from {sessions}."
    )
    return {
        "decision": "measured",
        "headline": headline,
        "sentences": [*_writes(log), *race_sentences(log), _cost([log])],
    }


def _writes(log: LogRow) -> Iterator[str]:
    from dbdyno.stats.wording import duration, size

    per_write = log["commits_per_write"] or 0
    yield (
        f"{log['writes']:,} writes of {size(log['paths'][0]['bytes'] / max(log['writes'], 1))} on "
        f"average, with {per_write:.2f} commits in each."
    )
    for path in log["paths"]:
        if "quantiles_ns" in path:
            q = path["quantiles_ns"]
            yield (
                f"A write to the {path['path']} ({path['file']}) takes {duration(q['p50'])} at "
                f"the median, {duration(q['p99'])} at p99, {duration(path['max_ns'])} at most."
            )


def race_sentences(log: LogRow) -> Iterator[str]:
    """Yield sentences on the race of a log; none if there was no race."""
    from dbdyno.stats.wording import duration

    race = log["race"]
    if race is None or not race["races"]:
        return
    first = race["first"] / race["races"]
    yield (
        f"Of {race['races']:,} races the first path won {race['first']:,} ({first:.1%}), the "
        f"second {race['second']:,} ({1 - first:.1%})."
    )
    limit = duration(log["outlier_ns"])
    yield (
        f"Outliers of {limit} or more: {race['prevented_outliers']:,} prevented (only the first "
        f"path was slow), {race['second_only_outliers']:,} on the second path only, "
        f"{race['actual_outliers']:,} not prevented."
    )
    if race["skipped_busy"]:
        yield (f"{race['skipped_busy']:,} writes went to the first path only, because the second was too far behind.")
    if race["held_back"]:
        yield f"{race['held_back']:,} writes waited until the first path had caught up."


def _cost(logs: list[LogRow]) -> str:
    from dbdyno.stats.wording import duration

    costs = " and ".join(duration(log["cost_ns"]) for log in logs)
    return (
        f"The probe itself costs {costs} per write, measured on a sink before the run. "
        "Commit times include this cost, path times do not."
    )
