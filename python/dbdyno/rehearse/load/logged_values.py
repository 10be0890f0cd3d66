"""Values that auto_explain logged with the plans of statements (`auto_explain.log_parameter_max_length`, since 16).

    values = logged_values([Path("postgresql.log")])
    values.executions_of("select * from t where id = $1", 5)    # up to five, by the quantiles of their time

Left out are executions whose values the server truncated, and those of a prepared statement without its values.
"""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from dbdyno.rehearse.statement import Parameters
from dbdyno.snapshot.engines.postgres.texts import fingerprint
from dbdyno.snapshot.plans.entries import DURATION, Clock
from dbdyno.snapshot.plans.reader import entries
from dbdyno.snapshot.plans.source import logs

_KEPT_MOST = 200
"""Maximum number of logged executions kept per statement to choose from."""
_VALUE = re.compile(r"\$(\d{1,5}) = (?:NULL|'((?:[^']|'')*+)')(?:, |$)", re.S)
_PARAMETER = re.compile(r"\$\d")
_CUT = "..."
_ROOT = re.compile(r"^[^\s\n][^\n]*  \(cost=\d", re.M)
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_OF_YAML = re.compile(rf"Query Text: ({_QUOTED})(?:\nQuery Parameters: ({_QUOTED}))?")
_OF_XML = re.compile(r"<Query-Text>(.*?)</Query-Text>(?:\s*<Query-Parameters>(.*?)</Query-Parameters>)?", re.S)


@dataclass
class LoggedValues:
    """Executions that were logged with all their values, grouped by the fingerprint of their statement."""

    found: dict[str, list[Parameters]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    dice: random.Random = field(default_factory=lambda: random.Random(1))

    def add(self, text: str, given: str, elapsed_ns: int) -> None:
        """Add an execution unless its values are not all known.

        Args:
            text: The statement as it was sent.
            given: Its parameters as `$1 = '5', $2 = NULL`; empty if it has none.
            elapsed_ns: Time of the execution [ns].
        """
        values = values_of(given)
        if values is None or (not values and _PARAMETER.search(text)):
            return
        name = fingerprint(text)
        kept, number = self.found.setdefault(name, []), self.counts.get(name, 0)
        self.counts[name] = number + 1
        one = Parameters(text, values, elapsed_ns=elapsed_ns, is_simple=not values)
        # A sample of all executions in which each has the same chance (Vitter's algorithm R).
        if number < _KEPT_MOST:
            kept.append(one)
        elif (place := self.dice.randrange(number + 1)) < _KEPT_MOST:
            kept[place] = one

    def executions_of(self, text: str, count: int) -> tuple[Parameters, ...]:
        """Return at most `count` executions of a statement, chosen by quantiles of their time."""
        kept = sorted(self.found.get(fingerprint(text), ()), key=_elapsed_or_zero)
        chosen = min(count, len(kept))
        return tuple(kept[(2 * at + 1) * len(kept) // (2 * chosen)] for at in range(chosen))


def logged_values(paths: Sequence[Path], prefix: str | None = None) -> LoggedValues:
    """Return the executions whose plans auto_explain logged in these files, folders and patterns.

    `prefix` is the server's log_line_prefix for text logs, None to find it.

    Raises:
        SnapshotError: A named log cannot be read.
    """
    values = LoggedValues()
    clock = Clock(ZoneInfo("UTC"))
    for source in logs(paths, []):
        for entry in entries(source, clock, prefix):
            found = DURATION.match(entry.message[:4096])
            if found is None or found[2] != "plan:":
                continue
            for text, given in _logged_queries(entry.message[found.end() :].lstrip("\n")):
                values.add(text, given, round(float(found[1]) * 1e6))
    return values


def values_of(given: str) -> tuple[bytes | None, ...] | None:
    """Return the values in a text such as `$1 = '5', $2 = NULL`; None if they are not complete.

    >>> values_of("$1 = 'it''s', $2 = NULL")
    (b"it's", None)
    """
    values: list[bytes | None] = []
    at = 0
    while at < len(given):
        one = _VALUE.match(given, at)
        if one is None or int(one[1]) != len(values) + 1 or (one[2] or "").endswith(_CUT):
            return None
        values.append(None if one[2] is None else one[2].replace("''", "'").encode())
        at = one.end()
    return tuple(values)


def _logged_queries(said: str) -> Iterator[tuple[str, str]]:
    """Yield the text and the parameters from a logged plan in any auto_explain.log_format."""
    if said.startswith("{"):
        try:
            whole = json.loads(said)
            yield str(whole["Query Text"]), str(whole.get("Query Parameters") or "")
        except (ValueError, LookupError, AttributeError, RecursionError):
            return
    elif said.startswith("<") and (found := _OF_XML.search(said)):
        yield html.unescape(found[1]), html.unescape(found[2] or "")
    elif (found := _OF_YAML.match(said)) and "\nPlan:" in said:
        yield json.loads(found[1], strict=False), json.loads(found[2], strict=False) if found[2] else ""
    elif said.startswith("Query Text: ") and (root := _ROOT.search(said)):
        text, _, given = said[len("Query Text: ") : root.start()].rstrip("\n").partition("\nQuery Parameters: ")
        yield text, given


def _elapsed_or_zero(parameters: Parameters) -> int:
    return parameters.elapsed_ns or 0
