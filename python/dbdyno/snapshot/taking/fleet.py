"""Many targets watched by one process, with a thread and a store for each, so that one that hangs affects only itself.

    store = "fleet"            # folder; each target has a store with its name in it
    every = "60s"              # and other keys of a target, for all of them

    [[target]]
    name = "orders"
    dsn = "postgresql://monitor@db1/app"
    databases = ["*"]

    [[target]]
    name = "billing"
    dsn_env = "BILLING_DSN"    # the connection string is in this variable

Targets begin spread over their period, so that a hundred of them are not read at one instant. A target that cannot be
reached is tried again each period. At the end a last snapshot is taken of each target. When no thread has reported
anything for `ENDING_S` seconds, the threads that hang are abandoned, and what they were writing does not count. The
caller then exits the process at once, because a driver's thread cannot be stopped.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.base.dsn import without_secrets
from dbdyno.base.errors import Error, SnapshotError
from dbdyno.base.files import user_file_toml
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import watch

ENDING_S = 15.0
_NAME = re.compile(r"[A-Za-z][\w.-]{0,60}")
_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(ms|s|min|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
PLANS_MOST = 200
_NEXT = "see the example in docs/how-to/snapshot.md"
COMMON_KEYS: dict[str, type | tuple[type, ...]] = {
    "every": str,
    "sample": str,
    "databases": list,
    "redact": bool,
    "statement_timeout": (int, float),
    "lock_timeout": (int, float),
    "plans": int,
}
"""Keys of a target that may also be set for all targets, at the top of the file."""
TARGET_KEYS: dict[str, type | tuple[type, ...]] = {"name": str, "dsn": str, "dsn_env": str}


@dataclass(frozen=True)
class Target:
    """One target of a fleet: its connection string with secrets, which is never written, and its period."""

    name: str
    dsn: str = field(repr=False)
    every_s: float
    sample_s: float | None
    options: Options


@dataclass
class Status:
    """What is known of a target while it is watched; `since` is when its thread last reported anything."""

    name: str
    taken: int = 0
    number: int | None = None
    problem: str | None = None
    next_s: float = 0.0
    since: float = 0.0
    ended: bool = False

    def word(self, now: float) -> str:
        """Return `ok`, `waiting` (for the first snapshot), `failing`, or `silent` if the thread is a minute late."""
        if not self.ended and now - self.since > self.next_s + 60:
            return "silent"
        if self.problem is not None:
            return "failing"
        return "ok" if self.taken else "waiting"


def read_fleet(path: Path, env: Mapping[str, str]) -> tuple[Path, list[Target]]:
    """Return the folder of the stores and the targets in a file.

    Raises:
        SnapshotError: The file cannot be read or is not valid; the error names the place.
    """
    found = user_file_toml(path, SnapshotError, next_step=_NEXT)
    rows = found.pop("target", None)
    store = found.pop("store", "fleet")
    _known(found, COMMON_KEYS, str(path))
    if not isinstance(rows, list) or not rows or not isinstance(store, str):
        raise SnapshotError("has no [[target]]", where=str(path), next_step=_NEXT)
    targets = [_target({**found, **row}, f"{path}, target {at}", env) for at, row in enumerate(rows, 1)]
    names = [one.name.casefold() for one in targets]
    twice = next((one.name for one in targets if names.count(one.name.casefold()) > 1), None)
    if twice is not None:
        raise SnapshotError(
            f"two targets are named {twice!r}", where=str(path), next_step="give each target its own name"
        )
    return Path(store), targets


def _known(given: Mapping[str, Any], keys: Mapping[str, type | tuple[type, ...]], where: str) -> None:
    for key, value in given.items():
        if key not in keys:
            raise SnapshotError(f"{key!r} is not a key", where=where, next_step=f"use only the keys {', '.join(keys)}")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise SnapshotError(f"{key!r} has a value of the wrong type", where=where, next_step=_NEXT)


def _target(row: Mapping[str, Any], where: str, env: Mapping[str, str]) -> Target:
    _known(row, {**COMMON_KEYS, **TARGET_KEYS}, where)
    name = row.get("name", "")
    if not _NAME.fullmatch(name):
        raise SnapshotError(
            f"{name!r} cannot name a target" if name else "has no name",
            where=where,
            next_step="use letters, digits, dots, - and _, with a letter first",
        )
    where = f"{where} ({name})"
    dsn = row.get("dsn") or env.get(row.get("dsn_env", ""), "")
    if not dsn or ("dsn" in row) == ("dsn_env" in row):
        raise SnapshotError(
            "has no connection string",
            where=where,
            next_step='write dsn = "postgresql://monitor@db1/app", or dsn_env with the name of a variable that is set',
        )
    databases = tuple(row.get("databases", ()))
    if not all(isinstance(one, str) for one in databases):
        raise SnapshotError("'databases' contains something that is not a name", where=where, next_step=_NEXT)
    sample_s = _seconds(row.get("sample", "1s"), where)
    return Target(
        name,
        dsn,
        max(0.05, _seconds(row.get("every", "60s"), where)),
        sample_s or None,
        Options(
            databases or None,
            row.get("redact", False),
            round(row.get("statement_timeout", 5.0) * 1000),
            round(row.get("lock_timeout", 0.5) * 1000),
            name,
            plans=min(max(int(row.get("plans", 0)), 0), PLANS_MOST),
        ),
    )


def _seconds(text: str, where: str) -> float:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise SnapshotError(f"{text!r} is not a duration", where=where, next_step="write 500ms, 60s or 5min")
    return float(match[1]) * _SECONDS[match[2] or ""]


OnSnapshot = Callable[[Target, Store, Snapshot | Error], None]
"""Function that is called in the target's thread for each snapshot and each failure."""


class Fleet:
    """Watcher of targets until `stop` is set or a given time is over."""

    def __init__(self, folder: Path, targets: list[Target], tell: OnSnapshot, *, stop: threading.Event) -> None:
        self.status = {one.name: Status(one.name, next_s=one.every_s) for one in targets}
        self._folder, self._targets, self._tell, self._stop = folder, targets, tell, stop
        self._lock = threading.Lock()

    def run(
        self, for_s: float | None = None, look: Callable[[], None] = lambda: None, look_s: float = 60.0
    ) -> list[str]:
        """Watch the targets, and return the names of those whose threads had to be abandoned.

        Watching ends after `for_s` seconds (None: only when stopped). `look` is called every `look_s` seconds.
        """
        threads = {}
        begun = time.monotonic()
        next_look_s = look_s
        for at, target in enumerate(self._targets):
            spread_s = min(target.every_s, 60.0, math.inf if for_s is None else for_s / 2)
            wait_s = spread_s * at / len(self._targets)
            self.status[target.name].since = begun + wait_s
            threads[target.name] = threading.Thread(
                target=self._watch, args=(target, wait_s, for_s), name=f"fleet {target.name}", daemon=True
            )
        for thread in threads.values():
            thread.start()
        while any(thread.is_alive() for thread in threads.values()):
            over = for_s is not None and time.monotonic() - begun > for_s + ENDING_S
            if over or self._stop.wait(min(0.2 if for_s is not None else 1.0, look_s)):
                break
            if time.monotonic() - begun > next_look_s:
                look()
                next_look_s += look_s
        self._stop.set()
        ending = time.monotonic()
        while any(thread.is_alive() for thread in threads.values()):
            if time.monotonic() - max(ending, *(one.since for one in self.status.values())) > ENDING_S:
                break
            time.sleep(0.05)
        return [name for name, thread in threads.items() if thread.is_alive()]

    def _watch(self, target: Target, wait_s: float, for_s: float | None) -> None:
        store = Store(self._folder / target.name)
        end = None if for_s is None else time.monotonic() + for_s
        if self._stop.wait(wait_s):
            wait_s = 0.0
        while not self._stop.is_set():
            for made in self._tries(target, store, None if end is None else max(0.0, end - time.monotonic())):
                self._note(target, store, made)
            if self._stop.wait(target.every_s if end is None else min(target.every_s, max(0, end - time.monotonic()))):
                break
            if end is not None and time.monotonic() >= end:
                break
        self.status[target.name].ended = True

    def _tries(self, target: Target, store: Store, for_s: float | None) -> Iterator[Snapshot | Error]:
        """Yield the snapshots and errors of watching one target; any exception becomes an error of this target."""
        try:
            yield from watch(
                target.dsn,
                store,
                target.options,
                every_s=target.every_s,
                for_s=for_s,
                sample_s=target.sample_s,
                stop=self._stop,
            )
        except Error as error:
            yield error
        except Exception as error:  # a driver's error: the other targets continue
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            yield SnapshotError(f"{type(error).__name__}: {said}", where=without_secrets(target.dsn))

    def _note(self, target: Target, store: Store, result: Snapshot | Error) -> None:
        status = self.status[target.name]
        status.since = time.monotonic()
        if isinstance(result, Snapshot):
            status.taken, status.number, status.problem = status.taken + 1, result.number, None
        else:
            status.problem = f"{result.where}: {result.message}" if result.where else result.message
        with self._lock:
            self._tell(target, store, result)


def environment() -> Mapping[str, str]:
    """Return the environment variables that `dsn_env` may name."""
    return os.environ
