"""Arms with an external client, for any engine: what such an arm may request, and how its client is described."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS, locate
from dbdyno.bench.clients.job import MODES

if TYPE_CHECKING:
    from dbdyno.bench.clients.load import ClientArm
    from dbdyno.study.plan.plan import Arm, Plan


def refuse_unfit_arm(plan: Plan, arm: Arm, engine: str = "postgres") -> None:
    """Raise `PlanError` if an arm needs something that its client cannot do, or if the client is not installed.

    Raises:
        PlanError: The arm cannot be run.
    """
    where = f"arm {arm.name!r}"
    if arm.client is None:
        if arm.fetch_size is not None:
            raise PlanError(
                "fetch_size needs an external client: the built-in client reads all rows at once",
                where=where,
                next_step='name an external client, such as client = "psycopg"',
            )
        return
    refuse_other_engine(arm, engine, where)
    locate(arm.client, Path(), where)
    if plan.workload.latency_limit_ns is not None:
        raise PlanError(
            "an external client cannot skip late transactions: it begins every transaction that is due",
            where=where,
            next_step="leave latency_limit out",
        )
    if plan.workload.max_tries > 1:
        raise PlanError("an external client does not retry transactions", where=where, next_step="leave max_tries out")


def refuse_other_engine(arm: Arm, engine: str, where: str) -> None:
    """Raise `PlanError` if a built-in client has no driver for this engine, or none that supports the fetch size.

    Raises:
        PlanError: The client cannot run the arm on this engine.
    """
    row = BUILTIN_CLIENTS.get(arm.client) if isinstance(arm.client, str) else None
    if row is not None and engine not in row.engines:
        fit = ", ".join(name for name, own in BUILTIN_CLIENTS.items() if engine in own.engines)
        raise PlanError(
            f"the client {arm.client} has no driver for this engine",
            where=where,
            next_step=f"name a client that has one: {fit}",
        )
    if row is not None and engine == "mariadb" and arm.fetch_size is not None:
        raise PlanError(
            "MariaDB sends all rows of a query at once: Connector/J has no cursor that fetches a few rows at a time",
            where=where,
            next_step="leave fetch_size out",
        )


_SOURCES = (".py", ".js", ".cjs", ".mjs", ".jar", ".java", ".rb", ".pl", ".R", ".php", ".lua", ".ts", ".sh")
"""File name suffixes of programs in source form, which an interpreter runs."""


def manifest_record(client: ClientArm) -> dict[str, str]:
    """Return what a run's manifest says about an arm's client."""
    about = client.process.about if client.process is not None else ""
    size = {"fetch_size": str(client.job.fetch_size)} if client.job.fetch_size else {}
    return {"client": f"{client.name} ({about})" if about else client.name, **size}


def client_name(arm: Arm) -> str:
    """Return the name of the arm's client: that of a built-in one, otherwise its program."""
    return name_of(arm.client or ["?"])


def name_of(client: str | Sequence[str]) -> str:
    """Return the name of a built-in client, otherwise the file name of a command.

    If the command starts with an interpreter, such as Python, the file that it runs is included.
    """
    if isinstance(client, str):
        return client
    program = Path(client[0]).name
    files = [Path(word).name for word in client[1:] if Path(word).suffix in _SOURCES]
    return " ".join([program, *files[:1]])


def describe_client(arm: Arm, protocol: str) -> str:
    """Return a description of the arm's client and of how it sends statements."""
    size = f", {arm.fetch_size:,} rows at a time" if arm.fetch_size else ""
    return f"client {client_name(arm)}, statements sent as {MODES[protocol]}{size}"


def start_sentences(plan: Plan) -> list[str]:
    """Return the programs that a plan would start, as sentences for the plan's reader."""
    return [
        f"starts the client {arm.client if isinstance(arm.client, str) else shlex.join(arm.client)}, which gets the"
        f" connection with its password ({arm.name})"
        for arm in plan.arms
        if arm.client is not None
    ]
