"""Arms that name an external client, on any engine: what can be asked of one, and what is said of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.builtin import BUILTIN, locate
from dbdyno.bench.clients.job import MODES

if TYPE_CHECKING:
    from dbdyno.bench.clients.load import ClientArm
    from dbdyno.study.plan.plan import Arm, Plan


def refuse_unfit(plan: Plan, arm: Arm, engine: str = "postgres") -> None:
    """Raises `PlanError` for what an external client cannot do on an engine, or for one that is not there."""
    where = f"arm {arm.name!r}"
    if arm.client is None:
        if arm.fetch_size is not None:
            raise PlanError(
                "fetch_size is for an external client: dbdyno's own takes all rows at once",
                where=where,
                next_step='name one: client = "psycopg"',
            )
        return
    refuse_other_engine(arm, engine, where)
    locate(arm.client, Path(), where)
    if plan.workload.latency_limit_ns is not None:
        raise PlanError(
            "an external client begins every transaction that is due, however late",
            where=where,
            next_step="leave latency_limit out",
        )
    if plan.workload.max_tries > 1:
        raise PlanError("an external client tries a transaction once", where=where, next_step="leave max_tries out")


def refuse_other_engine(arm: Arm, engine: str, where: str) -> None:
    """Raises `PlanError` for a built-in client that has no driver of this engine, or none that fetches as asked."""
    row = BUILTIN.get(arm.client) if isinstance(arm.client, str) else None
    if row is not None and engine not in row.engines:
        fit = ", ".join(name for name, own in BUILTIN.items() if engine in own.engines)
        raise PlanError(
            f"the client {arm.client} has no driver of this engine", where=where, next_step=f"one that has: {fit}"
        )
    if row is not None and engine == "mariadb" and arm.fetch_size is not None:
        raise PlanError(
            "MariaDB sends all rows of a query at once: Connector/J has no cursor that would fetch some at a time",
            where=where,
            next_step="leave fetch_size out",
        )


_SOURCES = (".py", ".js", ".cjs", ".mjs", ".jar", ".java", ".rb", ".pl", ".R", ".php", ".lua", ".ts", ".sh")
"""Files that another program runs."""


def manifest_record(client: ClientArm) -> dict[str, str]:
    """What a manifest says of an arm's client."""
    about = client.process.about if client.process is not None else ""
    size = {"fetch_size": str(client.job.fetch_size)} if client.job.fetch_size else {}
    return {"client": f"{client.name} ({about})" if about else client.name, **size}


def named(arm: Arm) -> str:
    """A client in words: the name of a built-in one, else its program."""
    return name_of(arm.client or ["?"])


def name_of(client: str | Sequence[str]) -> str:
    """The name of a built-in client, else the file of a command; where that is a language's own program, such as
    Python's, what it is told to run as well."""
    if isinstance(client, str):
        return client
    program = Path(client[0]).name
    files = [Path(word).name for word in client[1:] if Path(word).suffix in _SOURCES]
    return " ".join([program, *files[:1]])


def in_words(arm: Arm, protocol: str) -> str:
    """The client of an arm, and how it sends statements."""
    size = f", {arm.fetch_size:,} rows at a time" if arm.fetch_size else ""
    return f"client {named(arm)}, statements sent as {MODES[protocol]}{size}"


def starts(plan: Plan) -> list[str]:
    """The programs that a plan would start, as sentences for its reader."""
    return [
        f"starts the client {arm.client if isinstance(arm.client, str) else shlex.join(arm.client)}, which gets the"
        f" connection with its password ({arm.name})"
        for arm in plan.arms
        if arm.client is not None
    ]
