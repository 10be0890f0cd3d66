"""Captured run as a plan's workload: check before the run of its content, and of whether a server can replay it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.evidence.captures import open_capture
from dbdyno.evidence.encryption import is_encrypted
from dbdyno.study.plan.replay import FASTEST

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.study.plan.plan import Plan

SESSIONS_MOST = 10_000


def with_capture(plan: Plan) -> Plan:
    """Return the plan with the number of sessions and transactions of its capture; unchanged if it has no capture.

    Raises:
        TraceError: The capture cannot be read.
        PlanError: The capture has too many sessions, or no transaction to time.
    """
    from dbdyno import _core

    folder = plan.workload.replay
    if folder is None:
        return plan
    run = open_capture(Path(folder))
    if is_encrypted(run.path):
        raise PlanError(
            "the messages of the capture are encrypted, and a plan cannot name a key",
            where=folder,
            next_step="capture without --key-file for plans, or use `dbdyno trace replay` or `rehearse`, which "
            "take --key-file",
        )
    told = json.loads(_core.captured(run.path))
    sessions = told["at_once"]
    if sessions > SESSIONS_MOST:
        raise PlanError(
            f"{sessions:,} sessions at once in the capture; expected at most {SESSIONS_MOST:,}",
            where=folder,
            next_step="capture fewer sessions at once",
        )
    if not told["transactions"]:
        raise PlanError(
            "the capture has no round trip with an answer, so there is nothing to time",
            where=folder,
            next_step="capture again while the load runs",
        )
    if plan.workload.template is None and not plan.workload.setup:
        _refuse_writes(folder, told)
    return replace(
        plan,
        sessions=sessions,
        schedule=replace(plan.schedule, turn_transactions=told["transactions"]),
        watch=replace(plan.watch, overhead_blocks=0),
    )


def _refuse_writes(folder: str, told: Mapping[str, Any]) -> None:
    """Refuse a capture that writes, because replay sessions are read-only unless a database is copied for them."""
    if not told["writes"] and not told["lifts"]:
        return
    does = (
        f"writes in {told['writes']:,} of {told['turns']:,} round trips" if told["writes"] else "lifts read-only mode"
    )
    raise PlanError(
        f"the capture {does}, but the plan does not name a database to write to, so the replay would fail (25006)",
        where=folder,
        next_step='add template = "DATABASE" under [workload], and name a database in the state in which the capture'
        " began; each turn writes to a copy of it",
    )


def replay_notes(plan: Plan, targets: Sequence[Postgres]) -> tuple[str, ...]:
    """Return sentences about the replay for the plan's reader; empty if the plan replays nothing.

    Raises:
        TargetError: A server cannot serve the replay, or the template database cannot be copied.
    """
    work = plan.workload
    if work.replay is None:
        return ()
    for target in targets:
        if target.pooled:
            raise TargetError(
                "a run of a capture needs its own server sessions, but there is a pooler in between",
                where=target.safe_dsn,
                next_step="connect to the server directly, not through the pooler",
            )
    pace = "without think times" if work.speed == FASTEST else f"at {work.speed} times the captured speed"
    said = (
        f"each turn replays {plan.schedule.turn_transactions:,} transactions of {plan.sessions} session(s) at once,"
        f" {pace}; a transaction's time is the sum of its round trips"
    )
    if work.template is not None:
        sizes = {target.safe_dsn: _template_bytes(target, work.template) for target in targets}
        amount = max(sizes.values())
        return (
            said,
            f"before each turn {work.template!r} is copied ({amount / 2**20:,.0f} MiB); the copy is dropped after it",
        )
    if work.setup:
        return (
            said,
            "the set-up runs in a separate database; it is copied before each turn, and the copy is dropped after it",
        )
    return (said, "sessions are read-only, in the database itself: name a template to let them write to copies")


def _template_bytes(target: Postgres, template: str) -> int:
    """Return the size in bytes of the database to copy.

    Raises:
        TargetError: The database does not exist, dbdyno is connected to it, or the role may not create databases.
    """
    with contextlib.closing(target.connect()) as conn:
        row = conn.execute(
            "select (select oid from pg_database where datname = %s), current_database(),"
            " (select rolcreatedb or rolsuper from pg_roles where rolname = current_user)",
            [template],
        ).fetchone()
        oid, current, may = row or (None, "", False)
        reasons = {
            f"there is no database {template!r}": (oid is None, "restore one in the state in which the capture began"),
            f"{template!r} cannot be copied while dbdyno is connected to it": (
                current == template,
                "name another database of the server in the connection string, such as postgres",
            ),
            "this role may not create a database": (not may, f"ALTER ROLE {conn.info.user} CREATEDB"),
        }
        for why, (holds, step) in reasons.items():
            if holds:
                raise TargetError(why, where=target.safe_dsn, next_step=step)
        size = conn.execute("select pg_database_size(%s::oid)", [oid]).fetchone()
    return int(size[0]) if size else 0
