"""Text logs as log services store them: one JSON object for each entry, or for each line of an entry.

{"textPayload": "2026-11-21 00:59:57.437 UTC [28] LOG:  duration: 0.05 ms  plan: ...", "timestamp": "..."}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from dbdyno.snapshot.plans.entries import (
    CONTEXT,
    FOLLOWS,
    LONGEST,
    MARK,
    PREFIX_MOST,
    Entry,
    UnreadEntries,
    decode_text,
)
from dbdyno.snapshot.plans.syslog import Begun

PAYLOADS = ("textPayload", "log", "message")
"""Keys under which Cloud SQL, a container's runtime and CloudWatch store what the server logged."""
_WRAPPED = re.compile(rf'"(?:{"|".join(PAYLOADS)})": ?"[^"]*?[^\W\d]:  '.encode())


def is_wrapped(line: bytes) -> bool:
    """Return True for a JSON object that holds a line of a text log (jsonlog itself is not one)."""
    return line.startswith(b"{") and b'"error_severity"' not in line and _WRAPPED.search(line) is not None


def unwrap_entries(
    lines: Iterable[tuple[int, bytes]], name: str, begun: Begun, unread: UnreadEntries
) -> Iterator[Entry]:
    """Yield the entries in numbered lines, each a JSON object with an entry or with a line of one."""
    pending: Entry | None = None
    entry, first = b"", 0
    for number, line in chain(lines, [(0, None)]):
        payload = None if line is None else _payload(line, f"{name}:{number}", unread)
        if line is not None and (payload is None or (entry and payload.startswith(b"\t"))):
            entry += b"\n" + payload if payload and len(entry) < LONGEST else b""
            continue
        head = entry.partition(b"\n")[0]
        if FOLLOWS.search(head, 0, PREFIX_MOST) and not head.count(MARK):
            if pending is not None and CONTEXT.search(head, 0, PREFIX_MOST):
                pending.nested = True
        elif entry:
            if pending is not None:
                yield pending
            pending = begun(entry, f"{name}:{first}", first) if MARK in head else None
        entry, first = payload or b"", number
    if pending is not None:
        yield pending


def _payload(line: bytes, place: str, unread: UnreadEntries) -> bytes | None:
    try:
        found = json.loads(decode_text(line))
        text = next(found[key] for key in PAYLOADS if isinstance(found.get(key), str))
    except (ValueError, AttributeError, StopIteration, RecursionError):
        unread.add(f"its line is no JSON object with one of {', '.join(PAYLOADS)}", place)
        return None
    return str(text).rstrip("\r\n").encode("utf-8", "backslashreplace")
