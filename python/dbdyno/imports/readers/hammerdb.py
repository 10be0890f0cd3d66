"""Reader of HammerDB's results: `jobs ID result` and `jobs ID timing` as JSON, or a log with the line TEST RESULT.

NOPM are new orders a minute, the operations of TPROC-C; throughput is NOPM / 60. Only `timing` has times by
transaction; the times of NEWORD become those of the arm. The start is that of the job, or the time at the head of the
log. HammerDB writes both in the local time of its machine; they are read in the time zone of this machine.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.imports.contents import NS, Contents, Interval, Sums, finite, known_values
from dbdyno.imports.readers.json_text import has_keys, json_object, parse_json

RESULT = re.compile(r"TEST RESULT : System achieved (\d{1,15}) NOPM from (\d{1,15}) ([\w ]{1,40}?) TPM")
JOB = re.compile(r'"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"')
LOG = re.compile(r"^Hammerdb Log @ \w{3} (\w{3} \d\d \d\d:\d\d:\d\d) (\w{1,8}) (\d{4})\s*$", re.MULTILINE | re.ASCII)
USERS = re.compile(r"(\d{1,6}) (?:Active )?Virtual Users? configured", re.IGNORECASE)
MAIN = "NEWORD"
TIMES = {"mean": "avg_ms", "p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms", "min": "min_ms", "max": "max_ms"}


def matches(head: str) -> bool:
    """Return True if the text has HammerDB's result line, or begins like its timing."""
    return bool(RESULT.search(head)) or has_keys(head, "elapsed_ms", "calls", "ratio_pct")


def read(text: str, where: str) -> Contents:
    """Return NOPM as throughput, or the times of NEWORD.

    Raises:
        EvidenceError: The text holds more than one result, or is not HammerDB's.
    """
    found = RESULT.findall(text)
    if not found:
        return _timing(json_object(parse_json(text, where), "the file", where), where)
    if len(found) > 1:
        raise EvidenceError(
            f"contains {len(found)} results; expected one",
            where=where,
            next_step="write each job into its own file; each file becomes a block of the run",
        )
    orders, transactions, engine = found[0]
    users = USERS.search(text)
    values = {"throughput": int(orders) / 60, "NOPM": float(orders), "TPM": float(transactions)}
    contents = _contents(values, engine.strip(), int(users[1]) if users else None, 0)
    contents.ended_ns = _begun_ns(text)  # how long it ran is not in the text
    return contents


def _begun_ns(text: str) -> int | None:
    """Return the start of the job or the log; None if there is no time or its zone is not known here."""
    try:
        if job := JOB.search(text):
            begun = datetime.strptime(job[1], "%Y-%m-%d %H:%M:%S").astimezone()
        elif log := LOG.search(text):
            written = datetime.strptime(f"{log[1]} {log[3]}", "%b %d %H:%M:%S %Y")
            if log[2] in ("UTC", "GMT"):
                begun = written.replace(tzinfo=UTC)
            elif log[2] in time.tzname:
                begun = written.astimezone()
            else:
                return None
        else:
            return None
        return max(0, round(begun.timestamp())) * NS["s"]
    except (ValueError, OverflowError, OSError):
        return None


def _timing(given: JsonObject, where: str) -> Contents:
    main = json_object(given.get(MAIN), MAIN, where)
    elapsed_ms, calls = (finite(main.get(name), f"{MAIN} {name}", where) for name in ("elapsed_ms", "calls"))
    times = {own: finite(main[key], key, where) * NS["ms"] for own, key in TIMES.items() if key in main}
    values = known_values(throughput=calls / elapsed_ms * 1000 if elapsed_ms else None, transactions=calls) | times
    return _contents(values, "", None, round(elapsed_ms * NS["ms"]))


def _contents(values: dict[str, float], engine: str, users: int | None, elapsed_ns: int) -> Contents:
    arm = Sums("TPROC-C", [Interval(0, elapsed_ns, values)], max(1, min(users or 1, 65535)))
    settings = {} if users is None else {"virtual_users": users}
    return Contents("HammerDB", engine, "TPROC-C", {**settings}, sums=[arm])
