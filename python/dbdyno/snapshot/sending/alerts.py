"""Alert rules on the metrics of the last sub-interval, and their actions: a command, a webhook.

    [[rule]]
    name = "slow statements"
    metric = "mean"              # as in the report's curves; or failed: snapshots that failed in a row
    above = 5_000_000            # or below; in the metric's own unit
    for = 3                      # sub-intervals in a row
    command = ["/usr/local/bin/page", "dba"]
    webhook = "http://127.0.0.1:9000/alert"

An alert is sent once when the rule is broken and once when it holds again, as JSON: on the command's standard input, or
as the body of a POST. A value that is not known (a reset in between) changes nothing. The command is started without a
shell and without the environment variables of this process that may hold secrets.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbdyno.base.errors import Error, SnapshotError
from dbdyno.base.files import user_file_toml
from dbdyno.base.processes import child_environment, find_program
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.folder import Snapshot, Store

TIMEOUT_S = 30.0
"""Timeout of a command or a webhook, in seconds."""
FAILED = "failed"
KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "metric": str,
    "above": (int, float),
    "below": (int, float),
    "for": int,
    "command": list,
    "webhook": str,
}
PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Environment variables that are passed to a command."""
_NEXT = "see the example in docs/how-to/snapshot.md"


@dataclass(frozen=True)
class Rule:
    """One rule; `limit` is in the metric's unit, `times` is the number of sub-intervals in a row."""

    name: str
    metric: str
    limit: float
    is_above: bool
    times: int
    command: tuple[str, ...]
    webhook: str

    def is_broken_by(self, value: float) -> bool:
        """Return True if a value breaks the rule."""
        return value > self.limit if self.is_above else value < self.limit


@dataclass(frozen=True)
class Alert:
    """A rule that was broken (`firing`) or holds again (`resolved`)."""

    rule: Rule
    target: str
    state: str
    value: float
    at: str

    def to_json(self) -> dict[str, object]:
        """Return the message for a command or a webhook."""
        rule = self.rule
        limit = {"above" if rule.is_above else "below": rule.limit}
        return {
            "rule": rule.name,
            "target": self.target,
            "state": self.state,
            "metric": rule.metric,
            "value": self.value,
            **limit,
            "at": self.at,
        }


def read_rules(path: Path) -> list[Rule]:
    """Return the rules in a file.

    Raises:
        SnapshotError: The file cannot be read or is not valid; the error names the place.
    """
    found = user_file_toml(path, SnapshotError, next_step=_NEXT)
    rows = found.get("rule")
    if set(found) != {"rule"} or not isinstance(rows, list) or not rows:
        raise SnapshotError(
            "must contain one or more [[rule]] tables and nothing else", where=str(path), next_step=_NEXT
        )
    return [_rule(row, f"{path}, rule {at}") for at, row in enumerate(rows, 1)]


def _rule(row: Any, where: str) -> Rule:
    for key, value in row.items() if isinstance(row, dict) else ():
        if key not in KEYS or not isinstance(value, KEYS[key]) or isinstance(value, bool):
            raise SnapshotError(
                f"{key!r} is not a key of a rule, or its value has the wrong type", where=where, next_step=_NEXT
            )
    if not row.get("name") or not row.get("metric") or ("above" in row) == ("below" in row):
        raise SnapshotError("must have a name, a metric, and either above or below", where=where, next_step=_NEXT)
    if row.get("for", 1) < 1:
        raise SnapshotError(
            "'for' must be a number of sub-intervals, 1 or more", where=where, next_step="write for example for = 3"
        )
    url = row.get("webhook", "")
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise SnapshotError(
            "'webhook' is not a URL", where=where, next_step="write a URL such as http://127.0.0.1:9000/alert"
        )
    return Rule(
        row["name"],
        row["metric"],
        float(row["above"] if "above" in row else row["below"]),
        "above" in row,
        row.get("for", 1),
        _command(row.get("command", []), where),
        url,
    )


def _command(words: list[Any], where: str) -> tuple[str, ...]:
    if not words:
        return ()
    if not all(isinstance(word, str) and word for word in words):
        raise SnapshotError("'command' must be a list of words", where=where, next_step=_NEXT)
    program = Path(words[0]) if Path(words[0]).is_absolute() else find_program(words[0])
    if program is None or not program.is_file():
        raise SnapshotError(
            f"there is no program {words[0]!r}",
            where=where,
            next_step="write its full path, as in /usr/local/bin/page",
        )
    return (str(program), *words[1:])


class Alerts:
    """Evaluation of the rules on each snapshot as it is taken.

    `tell` is called with a line about each alert, and about each command or webhook that failed. These run in a
    separate thread, one after the other, so that watching does not wait for them.
    """

    def __init__(self, rules: list[Rule], tell: Callable[[str], None], env: Mapping[str, str]) -> None:
        self.fired = 0
        self._rules, self._tell = rules, tell
        self._env = child_environment({name: env[name] for name in PASSED_VARIABLES if name in env})
        self._row: dict[tuple[str, str], int] = {}
        self._firing: set[tuple[str, str]] = set()
        self._failures: dict[str, int] = {}
        self._queue: queue.SimpleQueue[Alert | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)
        self._thread.start()

    def evaluate(self, store: Store, target: str, result: Snapshot | Error) -> list[Alert]:
        """Return the alerts caused by a snapshot or by its failure, and queue them to be sent."""
        failures = 0 if isinstance(result, Snapshot) else self._failures.get(target, 0) + 1
        self._failures[target] = failures
        values: dict[str, float | None] = {FAILED: float(failures)}
        if isinstance(result, Snapshot):
            values |= last_metrics(store, result)
        at = result.at_utc.isoformat() if isinstance(result, Snapshot) else ""
        found = []
        for rule in self._rules:
            value = values.get(rule.metric)
            if value is not None:
                found += self._judge(rule, target, value, at)
        for alert in found:
            self._tell(f"alert {alert.state}: {alert.rule.name}: {alert.target}: {alert.rule.metric} {alert.value:.6g}")
            self._queue.put(alert)
        return found

    def close(self) -> None:
        """Wait for queued commands and webhooks, up to twice their timeout."""
        self._queue.put(None)
        self._thread.join(2 * TIMEOUT_S)

    def _judge(self, rule: Rule, target: str, value: float, at: str) -> list[Alert]:
        key = (rule.name, target)
        self._row[key] = self._row.get(key, 0) + 1 if rule.is_broken_by(value) else 0
        if self._row[key] >= rule.times and key not in self._firing:
            self._firing.add(key)
            self.fired += 1
            return [Alert(rule, target, "firing", value, at)]
        if not self._row[key] and key in self._firing:
            self._firing.remove(key)
            return [Alert(rule, target, "resolved", value, at)]
        return []

    def _work(self) -> None:
        while (alert := self._queue.get()) is not None:
            body = (
                json.dumps(alert.to_json()).encode() + b"\n"
            )  # one line per alert, for a command that appends them to a file
            for what, call in (("command", self._run), ("webhook", _post)):
                try:
                    call(alert.rule, body)
                except subprocess.SubprocessError as error:  # its message contains all arguments
                    self._tell(f"alert {alert.rule.name}: its {what} failed: {_ending(error)}")
                except (OSError, ValueError) as error:
                    self._tell(f"alert {alert.rule.name}: its {what} failed: {error}")

    def _run(self, rule: Rule, body: bytes) -> None:
        if rule.command:
            subprocess.run(
                list(rule.command), input=body, env=self._env, timeout=TIMEOUT_S, check=True, stdout=subprocess.DEVNULL
            )


def last_metrics(store: Store, snapshot: Snapshot) -> dict[str, float | None]:
    """Return the metrics between a snapshot and the one before it; empty if they cannot be subtracted.

    The first snapshot has none.
    """
    chain = list(islice(store.backwards(snapshot.target), 2))
    if len(chain) < 2 or chain[0].number != snapshot.number:
        return {}
    try:
        with Interval(store, chain[1], snapshot, [chain[1], snapshot]) as interval:
            return {metric.name: value for metric, value in interval.engine.metrics(interval)}
    except Error:
        return {}


def _ending(error: subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"it ended with {error.returncode}"
    return f"it had not ended after {TIMEOUT_S:g} s"


def _post(rule: Rule, body: bytes) -> None:
    if rule.webhook:
        post_json(rule.webhook, body, TIMEOUT_S)


def post_json(url: str, body: bytes, timeout_s: float) -> None:
    """POST JSON without following redirects or using a proxy.

    The timeout is for the whole request, because an answer that arrives in small pieces would never exceed a timeout
    per read.

    Raises:
        OSError: The answer is not 2xx, or is not complete in time.
    """
    failures: list[BaseException] = []

    def post() -> None:
        try:
            _post_json(url, body, timeout_s)
        except BaseException as error:
            failures.append(error)

    poster = threading.Thread(target=post, name="post", daemon=True)
    poster.start()
    poster.join(timeout_s)
    if poster.is_alive():
        raise TimeoutError(f"{urlsplit(url).hostname} did not answer within {timeout_s:g} s")
    if failures:
        raise failures[0]


def _post_json(url: str, body: bytes, timeout_s: float) -> None:
    import http.client

    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read(1 << 16)
        if not 200 <= answer.status < 300:
            raise OSError(f"{parts.hostname} answered {answer.status} {answer.reason}")
    except http.client.HTTPException as error:
        raise OSError(f"{parts.hostname} did not answer in HTTP: {error!r}") from error
    finally:
        connection.close()
