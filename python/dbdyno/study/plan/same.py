"""Which runs are of one plan, and since when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dbdyno.errors import PlanError
from dbdyno.evidence.manifest import Manifest
from dbdyno.study.plan.plan import Plan

_SPAN = re.compile(r"(\d{1,6})\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FREE = ("toml", "dsn", "title", "question")
"""What may differ between runs of one plan: how it is written, where it runs, what it is called."""
_FREE_SCHEDULE = ("seed", "blocks", "warmup_blocks")


def same_plan(plan: Plan, manifest: Manifest) -> bool:
    """Whether a run had the arms, workload, load and verdict of `plan`; number of blocks, seed and server aside."""
    return manifest.says("plan") and _essence(plan.to_dict()) == _essence(manifest.plan)


def _essence(plan: Mapping[str, Any]) -> dict[str, object]:
    own = {key: value for key, value in plan.items() if key not in _FREE}
    schedule = plan.get("schedule") or {}
    return own | {"schedule": {key: value for key, value in schedule.items() if key not in _FREE_SCHEDULE}}


def moment(text: str, now: datetime | None = None) -> str:
    """The beginning of a span of time as manifests write moments: of `2026-11-01`, `2026-11-01T12:00` (UTC), `7d`.

    Raises `PlanError` for anything else.
    """
    if match := _SPAN.fullmatch(text.strip()):
        begin = (now or datetime.now(UTC)) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        return begin.isoformat()
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PlanError(
            f"{text!r} is no moment", where="--since", next_step="write 2026-11-01, 2026-11-01T12:00, 12h or 7d"
        ) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
