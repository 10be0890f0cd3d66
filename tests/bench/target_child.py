"""What the tests kill: a process that holds a server or a changed setting.

Parameters come on stdin; the first argument says what to do:

embedded    start a server under `workdir`, say its folder, wait
hold        apply `settings` to the server of `dsn`, say so, wait
churn       the same, on and off without end
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from dbdyno.bench import EmbeddedPostgres, Guardian, Postgres, apply_server_settings, classify


def say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def embedded(given: dict[str, Any]) -> None:
    say(begun=True)
    with EmbeddedPostgres(Path(given["workdir"]), keep=given.get("keep", False)) as engine:
        say(folder=str(engine.folder), pid=engine.pid)
        time.sleep(given.get("seconds", 60))


def hold(given: dict[str, Any]) -> None:
    target = Postgres.open(given["dsn"])
    with contextlib.closing(target.connect()) as conn:
        changes = classify(conn, given["settings"])
    with (
        Guardian(Path(given["journal"])) as guardian,
        apply_server_settings(target, changes, guardian=guardian, allow_alter_system=True),
    ):
        say(in_force=True, guardian=guardian.pid)
        time.sleep(60)


def churn(given: dict[str, Any]) -> None:
    target = Postgres.open(given["dsn"])
    with contextlib.closing(target.connect()) as conn:
        changes = classify(conn, given["settings"])
    say(begun=True)
    with Guardian(Path(given["journal"])) as guardian:
        while True:
            with apply_server_settings(target, changes, guardian=guardian, allow_alter_system=True):
                pass


if __name__ == "__main__":
    {"embedded": embedded, "hold": hold, "churn": churn}[sys.argv[1]](json.load(sys.stdin))
