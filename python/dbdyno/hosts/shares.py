"""Shares of a load: the number of sessions and the rate for each host."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from dbdyno.base.errors import PlanError

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadSpec

SESSIONS_MOST = 65_535
SEEDS_APART = 7_919


def share_of(spec: LoadSpec, hosts: int, number: int) -> LoadSpec:
    """Return the load of host number `number` of `hosts`: its sessions, its share of the rate, and its own seed.

    Raises:
        PlanError: An arm has fewer sessions than there are hosts.
    """
    own = copy.deepcopy(spec)
    own["seed"] = spec["seed"] + SEEDS_APART * number
    for arm in own["arms"]:
        whole = arm["sessions"]
        arm["sessions"] = sessions_of(whole, hosts, number, arm["name"])
        if (rate := arm["rate_per_s"]) is not None:
            arm["rate_per_s"] = rate * arm["sessions"] / whole
    return own


def sessions_of(whole: int, hosts: int, number: int, arm: str) -> int:
    """Return the number of sessions of one host; if they cannot be divided evenly, the first hosts have one more.

    Raises:
        PlanError: There are fewer sessions than hosts, or more than evidence can number.
    """
    if whole < hosts or whole > SESSIONS_MOST:
        raise PlanError(
            f"{whole:,} session{'' if whole == 1 else 's'} cannot be shared by {hosts} hosts",
            where=f"arm {arm!r}",
            next_step=f"use from {hosts} to {SESSIONS_MOST:,} sessions, or fewer hosts",
        )
    return whole // hosts + (number < whole % hosts)


def first_session(whole: int, hosts: int, number: int) -> int:
    """Return the number of a host's first session among the sessions of all hosts."""
    return number * (whole // hosts) + min(number, whole % hosts)
