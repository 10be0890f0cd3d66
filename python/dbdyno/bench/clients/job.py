"""Messages sent to a client: one JSON object per line on its stdin.

The statements' values are drawn here, so that a client needs no script language.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.bench.clients.arrivals import Arrivals, draw_arrivals
from dbdyno.bench.clients.stream import VERSION

if TYPE_CHECKING:
    from dbdyno import _core
    from dbdyno.base.core_types import LoadArm

MODES = {"simple": "literals", "extended": "binds", "prepared": "prepared"}
"""Ways of sending statements: dbdyno's name of a protocol, and the name used by clients."""
DRAWN_MOST = 100_000
"""Maximum number of transactions drawn at once for all sessions of an arm."""
DRAWN_EACH = 2_000
_READS = re.compile(r"\s*(select|values|table|with)\b", re.I)
_CHANGES = re.compile(r"\b(insert|update|delete|merge|into)\b", re.I)


@dataclass(frozen=True)
class Job:
    """The job of a client in one arm: what the client runs and how."""

    arm: LoadArm
    drawer: _core.Drawer
    fetch_size: int | None = None
    seed: int = 0
    """Seed of the arrivals in an open loop."""

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return self.arm["sessions"]

    def arrivals(self, number: int, length_ns: int | None, transactions: int | None) -> Arrivals | None:
        """Return when the transactions of a slice are due, or None in a closed loop."""
        rate = self.arm.get("rate_per_s")
        if rate is None:
            return None
        return draw_arrivals(rate, [self.seed, number, self.sessions], length_ns, transactions, time.monotonic_ns())

    def job_message(self) -> bytes:
        """Return the job message: everything that stays the same for all slices."""
        statements = [
            {**statement, "query": is_query("".join(statement["pieces"]))} for statement in self.drawer.statements()
        ]
        return encode_message(
            {
                "do": "job",
                "protocol": VERSION,
                "sessions": self.sessions,
                "mode": MODES[self.arm.get("protocol") or "prepared"],
                "fetch_size": self.fetch_size,
                "statement_timeout_ms": self.arm.get("statement_timeout_ms"),
                "session_sql": list(self.arm.get("session_sql", [])),
                "scripts": [{"name": own["name"], "single": own["single"]} for own in self.drawer.scripts()],
                "statements": statements,
            }
        )

    def expects(self, script: int, code: str, vendor: int) -> bool:
        """Return True if the plan expects this error in a script, by its SQLSTATE or the engine's error number."""
        name = self.drawer.scripts()[script]["name"]
        own = next((one.get("expected_errors", ()) for one in self.arm["scripts"] if one["name"] == name), ())
        expected = {*own, *self.arm.get("expected_errors", ())}
        return code in expected or (vendor > 0 and str(vendor) in expected)

    def draw_message(self) -> bytes:
        """Return the message with the next transactions of each session; they are repeated until others are drawn."""
        count = min(DRAWN_EACH, max(1, DRAWN_MOST // self.sessions)) if self.drawer.varies() else 1
        drawn = [self.drawer.draw(session, count) for session in range(self.sessions)]
        return encode_message(
            {
                "do": "draw",
                "transactions": [
                    [[one["script"], [[number, *values] for number, values in one["steps"]]] for one in own]
                    for own in drawn
                ],
            }
        )


def is_query(sql: str) -> bool:
    """Return True if a statement only returns rows, so that a cursor may fetch them.

    >>> is_query("select 1"), is_query("with x as (delete from t returning 1) select * from x"), is_query("commit")
    (True, False, False)
    """
    return bool(_READS.match(sql)) and not _CHANGES.search(sql)


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Return a message in the form in which it is sent."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
