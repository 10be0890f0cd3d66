"""Check of whether a load can be spread over hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.errors import PlanError
from dbdyno.hosts.shares import share_of

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadSpec
    from dbdyno.bench.engine.prepare import PreparedEnginePlan


def refuse_unfit_for_hosts(hosts: int, ready: PreparedEnginePlan, spec: LoadSpec) -> None:
    """Raise an error if a prepared plan's load cannot be spread over this many hosts; no connection is opened.

    Raises:
        PlanError: The load cannot be spread, or an arm has fewer sessions than there are hosts.
    """
    plan = ready.plan
    reasons = {
        "an embedded engine answers only on this machine": any(arm.target.is_embedded for arm in ready.arms),
        "an arm has an external client": any(arm.arm.client is not None for arm in ready.arms),
        "its workload is a captured run": plan.workload.replay is not None,
        "its turns are counted in transactions": plan.schedule.turn_transactions is not None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise PlanError(
                f"the load cannot be spread over hosts: {reason}",
                where=plan.study or plan.title,
                next_step="leave hosts out, or change the plan; name the server with --target",
            )
    share_of(spec, hosts, 0)
