"""dbdyno: a performance laboratory for databases and the storage under them.

    import dbdyno

    run = dbdyno.find_run("last", Path("runs"))   # a run folder
    analysis = dbdyno.analyse(run)                # the model that every report is built from, a dict
    calls = dbdyno.sql("select * from calls", run)  # a table: .fetchnumpy(), .df(), .pl(), Arrow
    plan = dbdyno.read_plan(Path("plan.toml"))
    run = dbdyno.start(plan, Path("runs"))

    dbdyno.profile_trace("orcl_ora_4321.trc")     # where the time went, a dict
    run = dbdyno.read_trace("traces/", "runs/batch")

Each name is imported on first use, so `import dbdyno` alone is cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
_HOME = {
    "Arm": "study.plan.plan",
    "Block": "evidence.run",
    "BlockComparison": "stats.comparison",
    "CurveFit": "stats.curve",
    "Error": "base.errors",
    "EvidenceError": "base.errors",
    "Plan": "study.plan.plan",
    "PlanError": "base.errors",
    "Postgres": "bench.postgres.server",
    "ReportError": "base.errors",
    "Run": "evidence.run",
    "STUDIES": "study.library",
    "Script": "study.plan.plan",
    "StatsError": "base.errors",
    "TargetError": "base.errors",
    "analyse": "study.analysis.analyse",
    "analyse_pair": "study.analysis.pair",
    "blocks_needed": "stats.power",
    "compare_blocks": "stats.blocks",
    "examine": "bench.doctor",
    "find_run": "evidence.run",
    "find_study": "study.library",
    "fit_curve": "stats.curve",
    "list_runs": "evidence.run",
    "noise_floor": "stats.noise",
    "open_target": "bench.postgres.server",
    "parse_plan": "study.plan.file",
    "profile_trace": "trace.profile",
    "read_plan": "study.plan.file",
    "read_trace": "trace.source",
    "resume": "study.run.execute",
    "sql": "evidence.query",
    "start": "study.run.execute",
    "write_figures": "report.figures",
    "write_html": "report.html",
}

__all__ = list(_HOME)

if TYPE_CHECKING:
    from typing import Any

    from dbdyno.base.errors import (
        Error,
        EvidenceError,
        PlanError,
        ReportError,
        StatsError,
        TargetError,
    )
    from dbdyno.bench.doctor import examine
    from dbdyno.bench.postgres.server import Postgres, open_target
    from dbdyno.evidence.query import sql
    from dbdyno.evidence.run import Block, Run, find_run, list_runs
    from dbdyno.report.figures import write_figures
    from dbdyno.report.html import write_html
    from dbdyno.stats.blocks import compare_blocks
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.curve import CurveFit, fit_curve
    from dbdyno.stats.noise import noise_floor
    from dbdyno.stats.power import blocks_needed
    from dbdyno.study.analysis.analyse import analyse
    from dbdyno.study.analysis.pair import analyse_pair
    from dbdyno.study.library import STUDIES, find_study
    from dbdyno.study.plan.file import parse_plan, read_plan
    from dbdyno.study.plan.plan import Arm, Plan, Script
    from dbdyno.study.run.execute import resume, start
    from dbdyno.trace.profile import profile_trace
    from dbdyno.trace.source import read_trace


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dbdyno' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"dbdyno.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
