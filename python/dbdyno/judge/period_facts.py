"""Facts for a verdict on two periods of one server, collected from counters and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.judge.blocked_time import COMMIT, blocked_time_of, failed_transactions
from dbdyno.judge.more_work import added_work
from dbdyno.judge.same_work import same_work
from dbdyno.judge.verdict import Facts
from dbdyno.snapshot.causes import Change, causes, reported_causes
from dbdyno.snapshot.reading.active_rates import ActiveRates
from dbdyno.snapshot.reading.statement_costs import statement_costs


def facts_of(
    change: Change,
    looked: Sequence[ActiveRates | None],
    values: Sequence[Mapping[str, Sequence[float | None]]],
    counts: tuple[int, int],
    *,
    by_hour: bool = False,
    closed: str = "",
) -> Facts:
    """Return the facts of a change.

    Args:
        change: The change between the two periods.
        looked: Active sessions of both periods, as sampled; None for a period that was not sampled.
        values: Metrics of both periods, one value for each sub-interval.
        counts: Number of sub-intervals of both periods.
        by_hour: True for one value per hour.
        closed: Decision on throughput if the load is a closed loop; empty otherwise.
    """
    reported = reported_causes(change, causes(change))
    costs = [statement_costs(change, one, hourly=by_hour) for one in (change.before, change.after)]
    both = (costs[0], costs[1]) if costs[0] is not None and costs[1] is not None else None
    unread = (
        "" if change.is_in_both(change.view) else f"{change.view} was not read, so the time of statements is not known"
    )
    return Facts(
        counts,
        same_work(change, *both) if both else None,
        blocked_time_of(looked),
        failed_transactions(values),
        added_work(change, both) if both else None,
        reported,
        change.spent_ms,
        _calls(change),
        unread,
        closed,
        commits=blocked_time_of(looked, COMMIT),
        commits_a_second=_mean(values, "tps"),
    )


def _mean(values: Sequence[Mapping[str, Sequence[float | None]]], name: str) -> tuple[float, float]:
    """Return the mean of a metric in each period; 0 if it is unknown."""
    known = [[one for one in side.get(name, ()) if one is not None] for side in values]
    means = [sum(side) / len(side) if side else 0.0 for side in known]
    return (means[0], means[1]) if len(means) == 2 else (0.0, 0.0)


def _calls(change: Change) -> tuple[float, float]:
    """Return the number of statements per second in the first and in the second period."""
    every = change.statements.values()
    return sum(one.before.get("calls", 0.0) for one in every), sum(one.after.get("calls", 0.0) for one in every)
