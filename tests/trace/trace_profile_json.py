"""A profile as the core returns it, written by hand; its lines add up."""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import JsonObject

US = 1_000


def line(name: str, what: str, class_: str, waits: list[int], key: JsonObject | None = None) -> JsonObject:
    """Return a line with waits of these lengths [us]."""
    ordered = sorted(waits)
    histogram: dict[int, list[int]] = {}
    for us in waits:
        low = 10 ** (len(str(max(us, 1))) - 1)
        bucket = histogram.setdefault(low, [low * US, low * 10 * US, 0, 0])
        bucket[2] += 1
        bucket[3] += us * US
    return {
        "key": key or {"event": name},
        "what": what,
        "name": name,
        "class": class_,
        "count": len(waits),
        "total_ns": sum(waits) * US,
        "mean_ns": sum(waits) * US / len(waits),
        "min_ns": ordered[0] * US,
        "p50_ns": ordered[len(waits) // 2] * US,
        "p99_ns": ordered[-1] * US,
        "max_ns": ordered[-1] * US,
        "histogram": [histogram[low] for low in sorted(histogram)],
    }


def profile(**more: Any) -> dict[str, Any]:
    """Return the profile of two files with three lines of waits."""
    rows = [
        line("SQL*Net message from client", "wait", "network", [900, 1_200, 45_000, 800, 1_000]),
        line("log file sync", "wait", "commit", [512, 488, 3_070]),
        line("CPU", "cpu", "CPU", [140, 150, 1_000]),
        line("db file sequential read", "wait", "data read", [7, 12, 90, 110, 1_430]),
    ]
    rest = {
        "class": "",
        "count": 0,
        "mean_ns": None,
        "min_ns": None,
        "p50_ns": None,
        "p99_ns": None,
        "max_ns": None,
        "histogram": [],
    }
    rows.append(
        {
            "key": {"event": ""},
            "what": "unaccounted",
            "total_ns": -37 * US,
            "name": "unaccounted-for within calls",
            **rest,
        }
    )
    rows.append(
        {
            "key": {"event": ""},
            "what": "between",
            "total_ns": 1_234 * US,
            "name": "unaccounted-for between calls",
            **rest,
        }
    )
    whole = sum(row["total_ns"] for row in rows)
    for row in rows:
        row["share"] = row["total_ns"] / whole
    return {
        "files": 2,
        "bytes": 145_412,
        "lines": 2_013,
        "sessions": 2,
        "elapsed_ns": whole,
        "from_ns": 1_592_047_203_212_067_000,
        "to_ns": 1_592_047_205_212_067_000,
        "by": ["event"],
        "rows": rows,
        "calls": [
            {
                "kind": "fetch",
                "count": 12,
                "elapsed_ns": 5_000 * US,
                "cpu_ns": 900 * US,
                "self_elapsed_ns": 4_000 * US,
                "self_cpu_ns": 800 * US,
                "rows": 120,
            }
        ],
        "statements": {},
        "unread": {},
        "warnings": [],
        "refused": [],
        "left_out_by_top": None,
        **more,
    }
