"""Model of a rehearsal's page: plain data that `analysis.json` stores and every renderer reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from dbdyno.base.escaping import escape_line
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.evidence.run import Run
from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.cause import Cause, CauseContext
from dbdyno.rehearse.causes import plan_change, unexplained_note, worst_trial
from dbdyno.rehearse.decision import Decision, Total
from dbdyno.rehearse.first_execution import first_execution
from dbdyno.rehearse.plan_lines import jit_ns, plan_lines
from dbdyno.rehearse.request import Request
from dbdyno.rehearse.settings import differing_settings, one_sided, why_differing
from dbdyno.rehearse.statement import Load
from dbdyno.rehearse.verdict import Verdict

SCHEMA = 1
PLANNED_MOST = 200
"""Maximum number of statements whose plans are in the model."""
NAME = 60
"""Maximum length of a statement's text in the figure; the figure cuts it further where it has less room."""


def model_of(
    run: Run,
    load: Load,
    decisions: Sequence[Decision],
    total: Total,
    verdict: Verdict,
    causes: Mapping[int, Cause],
    catalogs: tuple[Catalog, Catalog],
    request: Request,
    replay: JsonObject | None = None,
) -> JsonObject:
    """Return the model of the page."""
    spent = sum(one.item.statement.total_ns for one in decisions) or 1
    rows = [_row(one, causes.get(one.item.statement.number), spent, request.threshold) for one in decisions]
    grounds = CauseContext(*catalogs)
    for row, one in zip(rows, decisions, strict=True):
        if one.word == "slower" and row["cause"] is None:
            row["unexplained"] = unexplained_note(one.item.trials[worst_trial(one.item)], grounds)
    return {
        "schema": SCHEMA,
        "kind": "rehearsal",
        "run": {"id": run.id, "title": request.title, "seed": request.seed},
        "sides": [
            {"name": name, "version": one.version, "server": run.manifest.targets[name].get("target")}
            for name, one in zip(("old", "new"), catalogs, strict=True)
        ],
        "change": list(request.change),
        "load": {
            "source": load.source,
            "kind": load.kind,
            "statements": len(load.statements),
            "calls": load.calls,
            "notes": list(load.notes),
        },
        "threshold": request.threshold,
        "verdict": {
            "decision": verdict.decision,
            "word": verdict.word,
            "tone": verdict.tone,
            "headline": verdict.headline,
            "sentences": list(verdict.sentences),
            "next": verdict.next,
        },
        "total": {
            "old_ns": total.old_ns,
            "ratio": _finite(total.ratio),
            "low": _finite(total.low),
            "high": _finite(total.high),
            "judged": total.judged,
        },
        "replay": replay,
        "statements": [row for row in rows if row["decision"] != "not rehearsed"],
        "left_out": [row for row in rows if row["decision"] == "not rehearsed"],
        "settings": [
            {"name": name, "old": old, "new": new, "why": why_differing(name, *catalogs)}
            for name, old, new in differing_settings(*catalogs)
        ],
        "extensions": _extensions(*catalogs),
        "one_sided": dict(zip(("old", "new"), one_sided(*catalogs), strict=True)),
        "figures": {"contributions": _contributions(decisions)},
    }


def _row(decision: Decision, cause: Cause | None, spent: int, threshold: float) -> JsonObject:
    item = decision.item
    statement = item.statement
    row: JsonObject = {
        "number": statement.number,
        "text": statement.text,
        "calls": statement.calls,
        "share": statement.total_ns / spent,
        "user": statement.user,
        "decision": decision.word,
        "ratio": _finite(decision.ratio),
        "low": _finite(decision.low),
        "high": _finite(decision.high),
        "old_ns": _finite(decision.old_ns),
        "new_ns": _finite(decision.new_ns),
        "added_ns": decision.added_ns if decision.is_timed else None,
        "first": asdict(first) if (first := first_execution(decision, threshold)) else None,
        "is_prepared": any(sample.is_prepared for sample in statement.samples),
        "blocks": len(item.old_ns),
        "sets": len(item.trials),
        "origin": item.trials[0].parameters.origin if item.trials else None,
        "answers": item.undetermined and f"not compared: {item.undetermined}",
        "reason": item.reason or ("" if decision.word != "not rehearsed" else "too few blocks"),
        "cause": None,
    }
    if cause is not None:
        row["cause"] = {
            "code": cause.code,
            "sentence": cause.sentence,
            "next": cause.next,
            "observed": cause.observed,
        }
    if item.trials and decision.word in ("fails", "differs", "slower", "faster"):
        trial = item.failing_trial or item.differing_trial or item.trials[worst_trial(item)]
        row["plan_change"] = plan_change(trial)
        row["jit_ns"] = jit_ns(trial.plans[1])
        row["plans"] = {"old": plan_lines(*trial.plans), "new": plan_lines(*trial.plans[::-1])}
        row["difference"] = trial.difference
        row["rows"] = {"old": trial.old.rows, "new": trial.new.rows}
        row["error"] = {"sqlstate": trial.new.sqlstate, "message": trial.new.message} if trial.new.sqlstate else None
    return row


def _contributions(decisions: Sequence[Decision]) -> list[TableRow]:
    timed = sorted((one for one in decisions if one.is_timed), key=lambda one: -abs(one.added_ns))
    return [
        {
            "name": f"{one.item.statement.number}: {escape_line(one.item.statement.text, NAME)}",
            "difference_ns": one.added_ns,
        }
        for one in timed[:10]
        if abs(one.added_ns) >= 1
    ]


def _extensions(old: Catalog, new: Catalog) -> list[TableRow]:
    """Return extensions whose versions differ between the sides, or from the new server's default version."""
    rows: list[TableRow] = [
        {"name": name, "old": old.extensions.get(name), "new": new.extensions.get(name), "now": new.available.get(name)}
        for name in sorted({*old.extensions, *new.extensions})
    ]
    return [row for row in rows if row["old"] != row["new"] or row["now"] not in (None, row["new"])]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
