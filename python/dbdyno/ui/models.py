"""Model of the page of any run or job, shown by `dbdyno report` and in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.evidence.run import Run


def model_of(given: Run | Path, *, keep: bool = False) -> Mapping[str, Any]:
    """Return the model of a run's page, computed from its evidence; a path is a move's job folder.

    With `keep`, the analysis of an experiment is also written to its folder.

    Raises:
        Error: The evidence cannot be read.
    """
    if isinstance(given, Path):
        from dbdyno.move.ledger.summary import job_summary

        return job_summary(given)
    from dbdyno.cells.record import KIND
    from dbdyno.evidence.query import is_rehearsal
    from dbdyno.evidence.trace_tables import KIND as TRACE

    if given.manifest.kind == KIND:
        from dbdyno.judge.cells_report import report_page

        return report_page(given)
    if given.manifest.kind == TRACE:
        from dbdyno.trace.report import Request
        from dbdyno.trace.report import report_page as trace_report_page
        from dbdyno.trace.source import open_traces

        with open_traces([str(given.path)]) as traces:
            return trace_report_page(traces, Request())
    if is_rehearsal(given):
        from dbdyno.evidence.files import read_json

        found: Mapping[str, Any] = read_json(given.path / "analysis.json")
        return found
    from dbdyno.study.analysis.analyse import analyse, analysis_of

    return analyse(given) if keep else analysis_of(given)
