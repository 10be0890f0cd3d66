"""Factors of studies on clients: levels from the values of `--set client=psycopg,jdbc` and similar options."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS, INSTALL
from dbdyno.study.plan.durations import duration_ns
from dbdyno.study.plan.factors import Level, choose_levels, numbers, option_values, sessions
from dbdyno.study.plan.keys import OWN_CLIENT, STATEMENT_MODES

OWN = OWN_CLIENT
INSTALLED = "installed"
NO_LINE = "none"


def clients(text: str, engine: str = "postgres") -> list[Level]:
    """Return the named clients as levels; `dbdyno` is dbdyno's own client.

    `installed` means all clients that are installed, have a driver for the engine, and do not take seconds to fetch
    many rows.

    Raises:
        PlanError: A client is unknown.
    """
    if text == INSTALLED:
        there = [name for name, row in BUILTIN_CLIENTS.items() if row.missing() is None and engine in row.engines]
        text = ",".join([OWN, *(name for name in there if not BUILTIN_CLIENTS[name].slow)])
    levels = {OWN: Level(OWN, levels={"client": OWN})}
    levels |= {name: Level(name, client=name, levels={"client": name}) for name in BUILTIN_CLIENTS}
    return choose_levels(levels, text, "client")


def left_out_sentence(engine: str = "postgres") -> str:
    """Return a sentence on the clients of an engine that `installed` leaves out; empty if it leaves out none."""
    rows = {name: row for name, row in BUILTIN_CLIENTS.items() if engine in row.engines}
    gone = [name for name, row in rows.items() if row.missing() is not None]
    slow = [name for name, row in rows.items() if row.slow and name not in gone]
    said = f" Left out, since they are not installed ({INSTALL}): {', '.join(gone)}." if gone else ""
    return said + (f" Left out, since many rows take it seconds (--set client=...): {', '.join(slow)}." if slow else "")


def fetch_sizes(text: str) -> list[Level]:
    """Return numbers of rows per fetch as levels.

    Raises:
        PlanError: A value is not a whole number above 0.
    """
    return [
        Level("1 row" if size == 1 else f"{size} rows", fetch_size=size, levels={"fetch_size": str(size)})
        for size in numbers(text, "fetch_size")
    ]


def delays(text: str) -> list[Level]:
    """Return network delays between client and server, each way, as levels; `none` means no network emulation.

    Raises:
        PlanError: A value is not a duration.
    """
    levels = []
    for value in option_values(text, "delay"):
        if value == NO_LINE:
            levels.append(Level("no line", levels={"delay": value}))
            continue
        if duration_ns(value) is None:
            raise PlanError(
                f"{value!r} is not a duration",
                where="--set delay",
                next_step="write a number with us or ms, such as 5ms, or none",
            )
        levels.append(Level(f"delay {value}", network={"delay": value}, levels={"delay": value}))
    return levels


def statement_modes(text: str) -> list[Level]:
    """Return statement modes (how the protocol sends a statement) as levels.

    Raises:
        PlanError: A value is unknown.
    """
    levels = {
        mode: Level(mode, protocol=protocol, levels={"statement_mode": mode})
        for mode, protocol in STATEMENT_MODES.items()
    }
    return choose_levels(levels, text, "statement_mode")


def sessions_of(text: str) -> list[Level]:
    """Return numbers of sessions as levels of a curve.

    Raises:
        PlanError: A value is not a whole number above 0.
    """
    return [replace(level, levels={"sessions": str(level.sessions)}) for level in sessions(text)]


def variables_of(name: str, text: str) -> list[Level]:
    """Return values of a script variable as levels.

    Raises:
        PlanError: A value is empty or occurs twice.
    """
    return [
        Level(f"{value} {name}", variables={name: value}, levels={name: value}) for value in option_values(text, name)
    ]


def refuse_own_client(levels: list[Level]) -> list[Level]:
    """Return the levels unchanged if none of them is dbdyno's own client.

    Raises:
        PlanError: A level is dbdyno's own client.
    """
    if any(level.client is None for level in levels):
        raise PlanError(
            "the built-in client reads all rows at once",
            where="--set client",
            next_step=f"name one or several of {', '.join(BUILTIN_CLIENTS)}",
        )
    return levels
