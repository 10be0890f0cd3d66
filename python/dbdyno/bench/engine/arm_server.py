"""Descriptions of servers that are started for arms: what starting them does, and their versions and options."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Plan, Server


def side_effects(plan: Plan, install: str) -> list[str]:
    """Return the side effects of starting servers for the arms, as sentences: programs and options may run anything.

    Args:
        plan: The plan.
        install: Name of the program that creates a data folder.
    """
    return [
        f"{does} ({arm.name})"
        for arm in plan.arms
        if arm.server is not None
        for does in _start_sentences(arm.server, install)
    ]


def describe_server(server: Server | None, version: str) -> dict[str, str]:
    """Return what is special about a server started for an arm: its version and initdb options, then its settings."""
    if server is None:
        return {}
    own = {"server": version, "initdb": " ".join(server.initdb)}
    return {name: value for name, value in own.items() if value} | server.settings


def _start_sentences(server: Server, install: str) -> list[str]:
    programs = [f"runs the server programs in {server.bindir}"] if server.bindir else []
    programs += [f"makes a server's folder in {server.workdir}"] if server.workdir else []
    options = [f"runs {install} with {shlex.join(server.initdb)}"] if server.initdb else []
    return [*programs, *options, *(f"starts the server with {k} = {v}" for k, v in server.settings.items())]
