"""Selection of the runs of one plan, and of the start of the time span in which runs count."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from dbdyno.base.dsn import text_without_secrets
from dbdyno.base.errors import PlanError
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import Run
from dbdyno.study.plan.plan import Plan

AnyRun = TypeVar("AnyRun", bound=Run)
_SPAN = re.compile(r"(\d{1,6})\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FREE = ("toml", "dsn", "title", "question", "of_builds")
"""Keys that can differ between runs of one plan: its text, its target, its names, and whether it is for builds."""
_FREE_KEYS = {"schedule": ("seed", "blocks", "warmup_blocks"), "watch": ("overhead_blocks",)}
"""Keys within tables that can differ between runs of one plan.

Benches that do not observe have no blocks that measure the cost of observation.
"""


def is_same_plan(plan: Plan, manifest: Manifest) -> bool:
    """Return True if a run had the arms, workload, load and verdict of `plan`; blocks, seed and server may differ.

    A run records its plan as its bench ran it: for example, a built-in workload in MariaDB's syntax, or a typed
    workload as scripts.
    """
    if not manifest.has("plan"):
        return False
    ran = _essence(manifest.plan)
    return any(_essence(own.to_dict()) == ran for own in _in_all_words(plan))


def are_runs_alike(first: Run, second: Run) -> bool:
    """Return True if two runs had the arms, workload, load and verdict of one plan, on any servers."""
    mine, yours = first.manifest, second.manifest
    if all(own.has("plan") and own.plan.get("of_builds") for own in (mine, yours)):
        same_arms = [arm["name"] for arm in mine.arms] == [arm["name"] for arm in yours.arms]
        return bool(mine.plan["toml"] == yours.plan["toml"]) and same_arms
    return mine.has("plan") and yours.has("plan") and _essence(mine.plan) == _essence(yours.plan)


def runs_of_builds(text: str, runs: Iterable[AnyRun]) -> list[AnyRun]:
    """Return the runs of builds whose plan has the text `text` and whose arms have the names of the last such run."""
    found = [run for run in runs if run.manifest.has("plan") and run.manifest.plan.get("of_builds")]
    found = [run for run in found if run.manifest.plan["toml"] == text_without_secrets(text)]
    return [run for run in found if are_runs_alike(found[-1], run)]


def _in_all_words(plan: Plan) -> Iterator[Plan]:
    from dbdyno.study.plan.typed_workloads import compile_workload
    from dbdyno.study.plan.workloads import workload_for_engine

    yield plan
    if plan.workload.builtin is not None:
        yield replace(plan, workload=workload_for_engine(plan.workload, "mariadb"))
    if plan.workload.kind is not None:
        with contextlib.suppress(PlanError):  # only a model runs it
            yield compile_workload(plan)


def _essence(plan: Mapping[str, Any]) -> dict[str, object]:
    own = {key: value for key, value in plan.items() if key not in _FREE}
    for table, free in _FREE_KEYS.items():
        own[table] = {key: value for key, value in (plan.get(table) or {}).items() if key not in free}
    return {key: _without_empty_keys(value) for key, value in own.items() if _without_empty_keys(value) not in _NOTHING}


_NOTHING: tuple[object, ...] = (None, "", [], {})


def _without_empty_keys(value: object) -> object:
    """Return a value without empty keys, because earlier versions did not write the keys of later ones."""
    if isinstance(value, Mapping):
        return {key: said for key, own in value.items() if (said := _without_empty_keys(own)) not in _NOTHING}
    if isinstance(value, list | tuple):
        return [_without_empty_keys(own) for own in value]
    return None if value is False else value


def span_start(text: str, now: datetime | None = None) -> str:
    """Return the start of a time span in the format of manifests, for `2026-11-01`, `2026-11-01T12:00` (UTC) or `7d`.

    Raises:
        PlanError: The text is neither a date, a time nor a time span.
    """
    if match := _SPAN.fullmatch(text.strip()):
        begin = (now or datetime.now(UTC)) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        return begin.isoformat()
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PlanError(
            f"{text!r} is not a time", where="--from", next_step="write 2026-11-01, 2026-11-01T12:00, 12h or 7d"
        ) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
