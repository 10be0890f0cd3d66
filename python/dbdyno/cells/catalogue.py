"""Metrics of storage cells: kind, unit, meaning, and how each may be aggregated.

Metric names follow a grammar: a family (CD cell disk, GD grid disk, FC flash cache ...), then what is counted (BY
megabytes, RQ requests, TM latency, WT time waited for IORM), then which I/O (R, W, SM and LG for small and large, with
the limit at 128 KB), then per what it is counted (_SEC, _MIN, _RQ). A name that is not in the catalogue is not an
error: its kind and meaning are derived from the grammar as far as possible.

Rules of aggregation, and their reasons:

| rule | applies to | over objects and cells |
|---|---|---|
| `sum` | counters, rates per time, space | they add up |
| `weighted` | latencies per request | sum of times / sum of requests; a plain mean would count a request on an idle disk a thousand times |
| `spread` | percentages, loads, temperatures, modes | minimum, mean, maximum; their sum means nothing |
"""  # noqa: E501

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

FAMILIES = {
    "CD": "cell disk",
    "GD": "grid disk",
    "CL": "cell",
    "CG": "consumer group",
    "CT": "category",
    "DB": "database",
    "PDB": "pluggable database",
    "FC": "flash cache",
    "FL": "flash log",
    "PC": "persistent memory cache",
    "N": "network",
    "SIO": "smart I/O",
    "IORM": "IORM",
}
_WORDS = {
    "IO": "",
    "BY": "megabytes",
    "MB": "megabytes",
    "KB": "kilobytes",
    "RQ": "requests",
    "TM": "latency",
    "WT": "time waited for IORM",
    "ST": "service time",
    "ERRS": "errors",
    "UTIL": "utilisation",
    "LOAD": "mean length of the queue",
    "R": "of reads",
    "W": "of writes",
    "RD": "of reads",
    "WR": "of writes",
    "SM": "small (up to 128 KB)",
    "LG": "large (over 128 KB)",
    "FD": "on flash disks",
    "FC": "on flash cache",
    "HD": "on hard disks",
    "FL": "on flash log",
    "SEC": "per second",
    "MIN": "per minute",
    "SCRUB": "of scrubbing",
    "SKIP": "past the cache",
    "MISS": "missed",
    "DIRTY": "not yet on disk",
    "ALLOCATED": "allocated",
    "USED": "used",
    "COL": "in columnar form",
    "FIRST": "first writes",
    "OVERWRITE": "overwrites",
    "POPULATE": "that filled the cache after a read",
    "METADATA": "of metadata",
    "DISK": "on disk",
    "WRITE": "written",
    "WRITER": "by the disk writer",
    "DW": "of data warehouse",
    "OLTP": "of OLTP",
    "KEEP": "of KEEP objects",
    "BYKEEP": "megabytes of KEEP objects",
    "RQKEEP": "requests of KEEP objects",
    "OVERWR": "evicted because of the KEEP limit",
    "ELIGIBLE": "eligible",
    "SAVED": "saved",
    "ACTIVE": "of active",
    "SECONDARY": "secondary mirrors",
    "NCMIRROR": "of mirrors that are not cached",
    "THROTTLE": "held back",
    "STALE": "stale",
    "PREFETCH": "prefetched",
    "REPLACEMENT": "replacements",
    "ATTEMPTED": "attempted",
    "FAILED": "that failed",
    "SUCCEEDED": "that succeeded",
    "TEMP": "temperature",
    "RECEIVED": "received",
    "SENT": "sent",
    "RESENT": "sent again",
    "DROP": "dropped",
    "RDMA": "by RDMA",
    "RETRY": "of retries",
    "RCV": "received",
    "TRANS": "sent",
    "HCA": "of the InfiniBand card",
    "NIC": "of the network card",
    "CPUT": "CPU used",
    "MEMUT": "memory used",
    "CS": "by the cell server",
    "MS": "by the management server",
    "FANS": "fans",
    "FSUT": "file system used",
    "RUNQ": "run queue",
    "SWAP": "swap",
    "IN": "in",
    "OUT": "out",
    "USAGE": "used",
    "VIRTMEM": "virtual memory",
    "NODATA": "without data",
    "EL": "eligible",
    "OF": "for offload",
    "RE": "returned",
    "PA": "passed",
    "TH": "through",
    "RV": "read for",
    "SI": "by storage index",
    "SV": "saved",
    "SP": "of sparse disks",
    "PARTIAL": "partly present",
    "REDIRECTED": "redirected",
    "PRCT": "share",
    "BBU": "battery",
    "CHARGE": "charge",
    "HIT": "hits",
    "MODE": "mode",
}
_OWN_WORDS = {
    "FL_IO_W": "redo writes that the flash log served: disk first + flash first",
    "FL_RQ_W": "redo write requests, served by the flash log or not",
    "FL_DISK_FIRST": "redo writes that were safe on disk first",
    "FL_FLASH_FIRST": "redo writes that were safe on flash first",
    "FL_PREVENTED_OUTLIERS": "redo writes whose disk copy was an outlier but whose flash copy was not: "
    "the session did not wait",
    "FL_FLASH_ONLY_OUTLIERS": "redo writes whose flash copy was an outlier but whose disk copy was not",
    "FL_ACTUAL_OUTLIERS": "redo writes that were outliers on disk and on flash",
    "FL_SKIP_OUTLIERS": "outliers among redo writes that bypassed the flash log",
    "FL_EFFICIENCY_PERCENTAGE": "share of all outliers that were prevented",
    "FL_EFFICIENCY_PERCENTAGE_HOUR": "share of all outliers that were prevented, in the last hour",
    "FL_BY_KEEP": "redo on flash that is not yet on disk",
    "FL_IO_DB_BY_W": "megabytes of redo written to disk through the flash log",
    "FL_IO_FL_BY_W": "megabytes of redo written to flash",
    "FL_IO_TM_W": "latency of redo writes that the flash log served",
    "FL_RQ_TM_W": "latency of redo write requests, served by the flash log or not",
    "FL_DISK_IO_ERRS": "errors of redo writes on disk",
    "FL_FLASH_IO_ERRS": "errors of redo writes on flash",
    "FL_IO_W_SKIP_BUSY": "redo writes that bypassed the flash log: too much redo is not yet on disk",
    "FL_IO_W_SKIP_LARGE": "redo writes that bypassed the flash log: larger than the space on any flash disk",
    "FL_IO_W_SKIP_NO_BUFFER": "redo writes that bypassed the flash log: no buffer was free",
    "FL_IO_W_SKIP_LOG_ON_FLASH": "redo writes that bypassed the flash log: the redo log itself is on flash",
    "FL_IO_W_SKIP_NO_FL_DISKS": "redo writes that bypassed the flash log: no flash disk is available",
    "FL_IO_W_SKIP_DISABLED_GD": "redo writes that bypassed the flash log: switched off for the grid disk",
    "FL_IO_W_SKIP_IORM_PLAN": "redo writes that bypassed the flash log: the IORM plan says flashlog=off",
    "FL_IO_W_SKIP_IORM_LIMIT": "redo writes that bypassed the flash log: the database is at its limit",
    "FC_IO_RQ_W": "write requests to the flash cache: first + overwrite + populate",
    "FC_IO_RQ_R": "read requests answered from the flash cache",
    "FC_IO_RQ_R_MISS": "read requests that missed the flash cache",
    "FC_BY_DIRTY": "megabytes in the flash cache that are not yet on disk",
    "IORM_MODE": "objective of IORM: 1 low latency, 2 balanced, 3 high throughput",
}

_STATISTIC_UNITS = {
    "(KB)": "KB",
    "- KB": "KB",
    " KB ": "KB",
    "(percentage)": "%",
    "Total bytes": "bytes",
}
_STATISTIC_GAUGES = re.compile(
    r"^(?:Current|Incarnation|OS memory|[SP]GA heap|Top \d|Cachesize|Keepsize|OLTPsize"
    r"|Columnar Cache|Flash Physical|Size of the smart IO"
    r"|Number of (?:active|threads|outstanding|cache headers))"
    r"|\bhwm\b|high water|efficiency|percentage|allocated size",
    re.IGNORECASE,
)
_STATISTIC_COUNTERS = re.compile(
    r"Number of|Total|Read on|Hard disk|Flash (?:disk|cache)|Size of|Dynamic buffer", re.IGNORECASE
)


_ERRORS = re.compile(r"ERRS|FAILED|DROP|RESENT|ACTUAL_OUTLIERS|SKIP_OUTLIERS|RETRY")


@dataclass(frozen=True)
class Metric:
    """Description of one metric.

    `object_type` is the type of object it belongs to; `kind` is counter, gauge, rate, transition or unknown; `unit` is
    empty if it has none; `rule` is the rule of aggregation (sum, weighted, spread).
    """

    name: str
    object_type: str
    kind: str
    unit: str
    meaning: str
    rule: str
    known: bool

    @property
    def counts_errors(self) -> bool:
        """Return True if higher values are always worse: errors, failures, and requests dropped or sent again."""
        return bool(_ERRORS.search(self.name))


@functools.cache
def _table() -> dict[str, tuple[str, str, str]]:
    text = files("dbdyno.cells").joinpath("catalogue.tsv").read_text()
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {name: (object_type, kind, unit) for name, object_type, kind, unit in rows}


@functools.lru_cache(maxsize=8192)  # bounded, because names come from cells, and a cell may send anything
def metric(name: str) -> Metric:
    """Return the description of a metric; that of an unknown metric is derived from the grammar of its name.

    The name of a statistic of cellsrvstat is a sentence; its description is derived from the words of that sentence.
    """
    if name != name.upper():
        return _statistic(name)
    found = _table().get(name)
    object_type, kind, unit = found or ("", _kind(name), _unit(name))
    return Metric(name, object_type, kind, unit, _meaning(name), rule(name, unit), found is not None)


def _unit(name: str) -> str:
    """Return the unit of an unknown rate if its counter is known, else an empty string."""
    _, _, unit = _table().get(name.removesuffix("_SEC"), ("", "", ""))
    return {"MB": "MB/sec", "IO requests": "IO/sec"}.get(unit, "") if name.endswith("_SEC") else ""


def _statistic(name: str) -> Metric:
    """Return the description of a statistic of cellsrvstat.

    Names that begin with 'Current', sizes and high water marks are gauges; numbers of something and totals are
    counters.
    The kind of short names (io_nbiorr_hdd) is unknown.
    """
    unit = next((unit for word, unit in _STATISTIC_UNITS.items() if word in name), "")
    kind = "unknown"
    if _STATISTIC_GAUGES.search(name):
        kind = "gauge"
    elif _STATISTIC_COUNTERS.match(name):
        kind = "counter"
    spread = unit == "%" or re.search(r"\bhwm\b|high water|Incarnation", name, re.I)
    rule_of = "spread" if spread else "sum"
    return Metric(name, "CELLSRVSTAT", kind, unit, name, rule_of, known=kind != "unknown")


def family_words(name: str) -> str:
    """Return the name of a metric's family, which the first part of its name defines: 'flash cache' for FC_IO_RQ_R."""
    head = name.partition("_")[0]
    return FAMILIES.get(head, head)


def names() -> list[str]:
    """Return the names of all metrics in the catalogue, in its order."""
    return list(_table())


def rule(name: str, unit: str = "") -> str:
    """Return the rule by which values of a metric are aggregated: 'sum', 'weighted' or 'spread'."""
    last = name.rsplit("_", 1)[-1]
    if latency_parts(name) or unit.endswith("/request"):
        return "weighted"
    spread = {"UTIL", "LOAD", "TEMP", "MODE", "CHARGE", "USAGE", "PRCT", "RUNQ", "HOUR", "FANS"}
    tokens = set(name.split("_"))
    if unit in ("%", "C") or last in spread or tokens & {"UTIL", "PERCENTAGE", "PRCT", "LOAD"}:
        return "spread"
    return "spread" if tokens & {"CPUT", "MEMUT", "FSUT"} else "sum"


def latency_parts(name: str) -> tuple[str, str] | None:
    """Return time and request counters of a latency: ('CD_IO_TM_R_SM', 'CD_IO_RQ_R_SM') for 'CD_IO_TM_R_SM_RQ'.

    For any other name, return None.
    """
    if not name.endswith("_RQ"):
        return None
    time = name.removesuffix("_RQ")
    tokens = time.split("_")
    for word in ("TM", "WT"):
        if word in tokens[1:]:
            at = tokens.index(word, 1)
            if tokens[0] == "FL":
                return time, "FL_IO_W" if tokens[1] == "IO" else "FL_RQ_W"
            return time, "_".join([*tokens[:at], "RQ", *tokens[at + 1 :]])
    return None


def request_counters(name: str) -> tuple[str, ...]:
    """Return the counters whose sum is the number of requests of a latency; empty if none is known.

    This is one counter, or the counters of small and of large requests if no counter covers both.
    """
    if name == "CD_IO_ST_RQ":
        return ("CD_IO_RQ_R_SM", "CD_IO_RQ_R_LG", "CD_IO_RQ_W_SM", "CD_IO_RQ_W_LG")
    parts = latency_parts(name)
    if parts is None:
        return ()
    both = (f"{parts[1]}_SM", f"{parts[1]}_LG")
    known = _table()
    return both if parts[1] not in known and known.keys() >= set(both) else (parts[1],)


def request_rates(name: str) -> tuple[tuple[str, ...], bool]:
    """Return the rates whose sum weights a latency, and whether they belong to the same objects.

    The flash log has no metric for its write rate; each database of the cell has such a metric, and their sum is the
    rate of FL_IO_W. The sum is also the rate of FL_RQ_W as long as no write bypassed the flash log.
    """
    if name in ("FL_IO_TM_W_RQ", "FL_RQ_TM_W_RQ"):
        return ("DB_FL_IO_RQ_SEC",), False
    return tuple(f"{counter}_SEC" for counter in request_counters(name)), True


def _kind(name: str) -> str:
    last = name.rsplit("_", 1)[-1]
    if last in ("SEC", "MIN") or latency_parts(name):
        return "rate"
    return "counter" if "_RQ" in name or "_TM" in name or "_WT" in name else "unknown"


def _meaning(name: str) -> str:
    """Return the meaning of a metric in words, derived from its name."""
    own = _OWN_WORDS.get(name)
    if own is not None:
        return own
    for suffix, words in (("_SEC", ", per second"), ("_MIN", ", per minute")):
        base = _OWN_WORDS.get(name.removesuffix(suffix))
        if name.endswith(suffix) and base is not None:
            return base + words
    family, *tokens = name.split("_")
    per_request = latency_parts(name) is not None or name.endswith("_ST_RQ")
    if per_request:
        tokens.pop()
    text = " ".join(word for token in tokens if (word := _WORDS.get(token, token.lower())))
    head = FAMILIES.get(family, family)
    return f"{head}: {text}{', per request' if per_request else ''}"
