"""Trials of settings as a cause: a slower statement run on the new side with the old side's value of one setting.

The statement is executed alternately with the new side's own value and with the old side's. A setting that removes a
large part of the difference in two rounds is tried again in six new rounds. It is the cause if these remove at least
half of the difference, and the whole 99 % interval of their ratio shows an improvement.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from dbdyno.rehearse.cause import Cause, CauseContext
from dbdyno.rehearse.decision import Decision, interval
from dbdyno.rehearse.settings import settable_value, setting_text, why_differing
from dbdyno.snapshot.plans.explain import ExplainedPlan
from dbdyno.snapshot.plans.tree import walk

_WORKERS = "max_parallel_workers_per_gather"
TRIED_SETTINGS = (
    "work_mem",
    "hash_mem_multiplier",
    "jit",
    _WORKERS,
    "random_page_cost",
    "seq_page_cost",
    "cpu_tuple_cost",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "effective_cache_size",
    "effective_io_concurrency",
    "from_collapse_limit",
    "join_collapse_limit",
    "geqo",
    "plan_cache_mode",
    "constraint_exclusion",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "min_parallel_table_scan_size",
    "jit_above_cost",
    "enable_bitmapscan",
    "enable_hashagg",
    "enable_hashjoin",
    "enable_incremental_sort",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_memoize",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_parallel_hash",
    "enable_partition_pruning",
    "enable_partitionwise_join",
    "enable_seqscan",
    "enable_sort",
    "enable_tidscan",
)
"""Settings that change plans or execution and can be set in a session; tried one by one, in this order."""
_RESTORED = 0.5
_SCREENED, _CONFIRMED, _CANDIDATES = 2, 6, 3
"""Rounds of a first trial, rounds of a confirming trial, and number of settings that get a confirming trial."""
_LEVEL = 0.99
"""Confidence level of a confirming trial's interval; up to three settings get a confirming trial."""
_SCREENED_SHARE = 0.3
"""Minimum share of the difference that a setting must remove in a first trial."""
TrialTimes = tuple[Sequence[float], Sequence[float]]
"""Times on the new side in each round, without and with a change [ns]."""
TrySetting = Callable[[str, str, int], TrialTimes | None]
"""Function that tries a setting, given its name, value and number of rounds; it returns None if it cannot be set.

Raises `OutOfTimeError` if there is no time for it.
"""


class OutOfTimeError(Exception):
    """Raised when no time is left to look for causes."""


def setting_cause(decision: Decision, grounds: CauseContext, try_setting: TrySetting) -> Cause | None:
    """Return the setting whose old value certainly removes half of the difference or more; None if there is none."""
    candidates = []
    for name in TRIED_SETTINGS:
        was, now = grounds.old.settings.get(name), grounds.new.settings.get(name)
        if was is None or now is None or was == now:
            continue
        screened = try_setting(name, settable_value(was), _SCREENED)
        if screened is not None and (restored := _restored_share(decision, screened)) >= _SCREENED_SHARE:
            candidates.append((restored, name, was, now))
    for _, name, was, now in sorted(candidates, reverse=True)[:_CANDIDATES]:
        if (certain := _certainly_restored(decision, try_setting, name, settable_value(was))) is not None:
            back = f"with the old value the difference shrinks by {100 * min(certain, 1):.0f} %"
            why = why_differing(name, grounds.old, grounds.new)
            words = f"{name} is {setting_text(now)} and was {setting_text(was)}" + (f" ({why})" if why else "")
            return Cause("setting", words, f"set {name} = '{setting_text(was)}' on the new side", back)
    return None


def plan_choice_cause(decision: Decision, try_setting: TrySetting) -> Cause | None:
    """Return the generic plan as the cause if reversing the plan choice removes at least half of the difference."""
    choices = decision.item.choices
    if choices is None or not (choices[0].is_generic or choices[1].is_generic):
        return None
    mode = "force_custom_plan" if choices[1].is_generic else "force_generic_plan"
    restored = _certainly_restored(decision, try_setting, "plan_cache_mode", mode)
    if restored is None:
        return None
    return Cause(
        "generic plan",
        f"prepared, it executes {choices[1].as_text} on the new side, {choices[0].as_text} on the old",
        f"set plan_cache_mode = {mode} for the sessions that execute it, or stop the driver from preparing it",
        f"with {mode} the difference shrinks by {100 * min(restored, 1):.0f} %",
    )


def parallel_plan_cause(decision: Decision, grounds: CauseContext, try_setting: TrySetting) -> Cause | None:
    """Return a parallel plan that only the new side has as the cause if it explains at least half of the difference."""
    old, new = grounds.plans
    if old is None or new is None or _is_parallel(old) or not _is_parallel(new):
        return None
    restored = _certainly_restored(decision, try_setting, _WORKERS, "0")
    if restored is None:
        return None
    return Cause(
        "parallel plan",
        "the new side executes it with parallel workers, the old side without",
        f"analyze its tables on both sides; if the plan stays the same, set {_WORKERS} = 0 for the sessions that "
        "execute it, "
        f"or raise parallel_setup_cost",
        f"with {_WORKERS} = 0 the difference shrinks by {100 * min(restored, 1):.0f} %",
    )


def _is_parallel(plan: ExplainedPlan) -> bool:
    return any(node.kind.startswith("Gather") for _, node in walk(plan.plan))


def _certainly_restored(decision: Decision, try_setting: TrySetting, name: str, value: str) -> float | None:
    """Return the share of the difference that a setting removes; None if it is too small or not certain."""
    tried = try_setting(name, value, _CONFIRMED)
    if tried is None or (restored := _restored_share(decision, tried)) < _RESTORED:
        return None
    unchanged, changed_times = tried
    _, _, high = interval(unchanged, changed_times, _LEVEL)
    return restored if high < 1 else None


def _restored_share(decision: Decision, tried: TrialTimes) -> float:
    """Return the share of a statement's difference that a setting removes, from the ratio of its times."""
    excess = 1 - decision.old_ns / decision.new_ns
    if excess <= 0:
        return 0.0
    logs = [math.log(changed_ns / unchanged_ns) for unchanged_ns, changed_ns in zip(*tried, strict=True)]
    return (1 - math.exp(statistics.fmean(logs))) / excess
