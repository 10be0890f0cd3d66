"""Description of what a plan would do on its bench, without doing it: `dbdyno plan check`, `dbdyno run --dry-run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.signals import StopSignals
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.protocol import BenchContext
from dbdyno.study.plan.hosts import host_side_effects
from dbdyno.study.plan.plan import Plan
from dbdyno.study.run.execute import hold_bench, open_bench, plan_to_resume, refuse_single_host_bench

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


def describe(plan: Plan, *, ways: Mapping[str, Any] | None = None, folder: Path = Path("runs")) -> str:
    """Return a page on what a new run would do; raise errors that would occur before its first block."""
    with Guardian() as guardian:
        return _page(plan, BenchContext(StopSignals(), guardian, folder, ways=ways or {}, only_looks=True))


def describe_resume(run: Run, target: str | None = None, ways: Mapping[str, Any] | None = None) -> str:
    """Return the page of what the rest of an interrupted run would do."""
    plan = plan_to_resume(run)
    with Guardian() as guardian:
        around = BenchContext(
            StopSignals(), guardian, run.path.parent, ways=ways or {}, target=target, cut=run, only_looks=True
        )
        return _page(plan, around)


def _page(plan: Plan, around: BenchContext) -> str:
    if plan.hosts:
        refuse_single_host_bench(plan)
    with hold_bench(open_bench(plan, around)) as bench:
        bench.prepare()
        page = bench.describe() + "".join(f"{order}\n" for order in host_side_effects(plan))
        return f"{page}nothing was changed\n" if bench.traits.asks else page
