"""Why a statement fails, answers differently, or is slower on the new side.

Settings are tried (`setting_trials`). Everything else is read from both catalogs and both plans, and is named as a
cause only if the statement uses it: its plan has the table, or its text names the function or view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.rehearse.catalog import Relation
from dbdyno.rehearse.cause import NO_TIME, Cause, CauseContext
from dbdyno.rehearse.decision import Decision
from dbdyno.rehearse.names import named_objects, words_of
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement, Trial
from dbdyno.rehearse.setting_trials import (
    OutOfTimeError,
    TrySetting,
    parallel_plan_cause,
    plan_choice_cause,
    setting_cause,
)
from dbdyno.rehearse.settings import differing_settings
from dbdyno.snapshot.plans.explain import ExplainedPlan, UnreadPlanError, plan_from_values
from dbdyno.snapshot.plans.tree import Node, describe_change, identity, walk

_BLOATED = 1.5
_LACKING = ("42P01", "3F000", "42883")
"""SQLSTATEs of errors about a missing object: a table or view, a schema, a function."""
_OTHER_ROWS = 1.1
"""Minimum ratio of two estimates of a table's rows to call the tables different; ANALYZE only samples."""


def read_plan(text: str) -> ExplainedPlan | None:
    """Return the plan of an EXPLAIN in JSON, or None if it cannot be read."""
    import json

    try:
        return plan_from_values({"Query Text": "", **json.loads(text)[0]})[1]
    except (ValueError, LookupError, TypeError, UnreadPlanError):
        return None


def plan_change(trial: Trial) -> str:
    """Describe how the plan changed; empty if it did not change or the plans are unknown."""
    old, new = (read_plan(text) if text else None for text in trial.plans)
    if old is None or new is None or identity(old.plan) == identity(new.plan):
        return ""
    return describe_change(old.plan, new.plan)


def worst_trial(item: RehearsedStatement) -> int:
    """Return the index of the first trial whose plans differ, else of the first one that succeeded."""
    for at, trial in enumerate(item.trials):
        if plan_change(trial):
            return at
    return next((at for at, one in enumerate(item.trials) if not one.old.sqlstate and not one.new.sqlstate), 0)


def cause_of_failure(text: str, trial: Trial, grounds: CauseContext) -> Cause:
    """Return why a statement fails on the new side."""
    state, message = trial.new.sqlstate, trial.new.message
    if state == "42601" and (word := _reserved_word(text, message, grounds)):
        return Cause(
            "keyword",
            f"{word} is a reserved word on {grounds.new.major}: {message}",
            f'write "{word}" in double quotes, or rename it',
        )
    if state == "23505" and (behind := _sequence_behind(text, grounds)):
        return Cause("sequence", f"a sequence is behind its column: {behind}", "set it with setval after the copy")
    if function := _differing_object(text, grounds, "functions"):
        return Cause(
            "function",
            f"function {function} has another definition on the new side: {message}",
            "compare both definitions",
        )
    if state in _LACKING and (lacking := _only_old(text, grounds)):
        return Cause(
            "missing",
            f"the new side has no {lacking}: {message}",
            "create the new side as a copy of the old one (`dbdyno move OLD NEW --database`), then rehearse again",
        )
    if state == "57014":
        return Cause("timeout", f"its time limit cancelled it on the new server: {message}", "check its plan")
    return Cause("error", f"{state}: {message}", "run it on the new server and read the server's message")


def _only_old(text: str, grounds: CauseContext) -> str | None:
    """Return the first table or view in a text that exists only on the old side."""
    for kind, side in (("table", "relations"), ("view", "views"), ("function", "functions")):
        old, new = getattr(grounds.old, side), getattr(grounds.new, side)
        if found := next((name for name in named_objects(text, old, grounds.path) if name not in new), None):
            return f"{kind} {found}"
    return None


def cause_of_answer(text: str, trial: Trial, grounds: CauseContext) -> Cause:
    """Return why a statement answers differently on the new side."""
    if trial.difference == "order" and (said := _collation(text, grounds)):
        return Cause("collation", f"rows have another order: {said}", "create the copy with the old collation")
    if definition := next(_definitions(text, grounds), None):
        return definition
    for name in named_objects(text, grounds.old.relations, grounds.path):
        old_rows, new_rows = grounds.old.relations.get(name), grounds.new.relations.get(name)
        if old_rows and new_rows and _are_others(old_rows.rows, new_rows.rows):
            counts = f"about {old_rows.rows:,.0f} on the old side, {new_rows.rows:,.0f} on the new"
            words = f"table {name} has a different number of rows: {counts}"
            return Cause("data", words, "copy both sides from one snapshot")
    if said := _collation(text, grounds):
        return Cause("collation", said, "create the copy with the old collation")
    what = {"rows": "a different number of rows", "columns": "other columns", "order": "another order"}
    found = what.get(trial.difference, "other values")
    unread = [f"{name} of the {side} side" for side in ("old", "new") for name in getattr(grounds, side).unread]
    known = (
        f"no definition that could be read differs (not read: {', '.join(unread)})"
        if unread
        else "no definition differs"
    )
    return Cause("answer", f"{found}, and {known}: the data may differ", "compare the rows on both sides")


def cause_of_slowness(decision: Decision, grounds: CauseContext, try_setting: TrySetting) -> Cause | None:
    """Return why a statement is slower on the new side, or None if nothing explains it."""
    text = decision.item.statement.text
    if direct := next(_direct(text, grounds), None):
        return direct
    structural = next(_structural(grounds), None)
    try:
        found = (
            setting_cause(decision, grounds, try_setting)
            or plan_choice_cause(decision, try_setting)
            or parallel_plan_cause(decision, grounds, try_setting)
        )
    except OutOfTimeError:
        return structural or NO_TIME
    return found or structural


def unexplained_note(trial: Trial, grounds: CauseContext) -> str:
    """Return what is known about a slower statement without an explanation, and what could not be read."""
    plans = [read_plan(text) if text else None for text in trial.plans]
    unknown = [f"its plan on the {side} side" for side, plan in zip(("old", "new"), plans, strict=True) if plan is None]
    said = []
    if not unknown:
        said.append("the plans differ" if plan_change(trial) else "the plans are the same")
    count = sum(1 for _ in differing_settings(grounds.old, grounds.new))
    tried = "none of those tried removes half of the difference"
    said.append(f"{count} settings differ, and {tried}" if count else "the settings are the same")
    unknown += _unread(grounds)
    if unknown:
        said.append(f"not known: {', '.join(unknown)}")
    return f"Nothing that was read explains it: {'; '.join(said)}."


def _unread(grounds: CauseContext) -> Iterator[str]:
    for side, catalog in (("old", grounds.old), ("new", grounds.new)):
        yield from (f"{name} of the {side} side" for name in catalog.unread)


def _direct(text: str, grounds: CauseContext) -> Iterator[Cause]:
    yield from _definitions(text, grounds)
    for name in _indexes(grounds.plans[0]):
        if name not in grounds.new.indexes and name in grounds.old.indexes:
            definition = grounds.old.indexes[name]
            yield Cause("index", f"index {name} does not exist on the new side", f"create it: {definition}")


def _definitions(text: str, grounds: CauseContext) -> Iterator[Cause]:
    for kind in ("view", "function"):
        if name := _differing_object(text, grounds, f"{kind}s"):
            yield Cause(kind, f"{kind} {name} has another definition on the new side", "compare both definitions")


def _structural(grounds: CauseContext) -> Iterator[Cause]:
    tables = sorted({*_tables(grounds.plans[0]), *_tables(grounds.plans[1])})
    for name, definition in grounds.old.statistics.items():
        if name not in grounds.new.statistics and grounds.old.statistics_tables.get(name) in tables:
            yield Cause(
                "statistics", f"the extended statistics {name} are missing", f"create them, then analyze: {definition}"
            )
    old, new = grounds.old, grounds.new
    for table in tables:
        for column in (key for key in {**old.targets, **new.targets} if key.rpartition(".")[0] == table):
            was, now = old.targets.get(column, "default"), new.targets.get(column, "default")
            if was != now:
                name = column.rpartition(".")[2]
                yield Cause(
                    "target",
                    f"the statistics target of {column} is {now} and was {was}",
                    f"alter table {table} alter column {name} set statistics {was}; analyze {table}",
                )
        was_known, is_known = old.relations.get(table), new.relations.get(table)
        if was_known is not None and is_known is not None:
            yield from _of_table(table, was_known, is_known)
    if old.settings.get("default_statistics_target") != new.settings.get("default_statistics_target"):
        values = tuple(side.settings.get("default_statistics_target") for side in (old, new))
        yield Cause(
            "target", f"default_statistics_target is {values[1]} and was {values[0]}", "set it as before, then analyze"
        )


def _of_table(table: str, old: Relation, new: Relation) -> Iterator[Cause]:
    analyzed = old.analyzed_columns, new.analyzed_columns
    if analyzed[0] is not None and analyzed[1] is not None and analyzed[1] < analyzed[0]:
        yield Cause("statistics", f"table {table} lacks statistics for some columns", f"analyze {table}")
    is_known = old.rows >= 0 and new.rows >= 0
    if is_known and new.disk_pages > _BLOATED * max(old.disk_pages, 1) and new.rows < _BLOATED * max(old.rows, 1):
        words = f"table {table} is bloated: {new.disk_pages:,} pages for the same rows, {old.disk_pages:,} before"
        yield Cause("bloat", words, f"vacuum full {table} (it locks the table), or copy it again")


def _are_others(old: float, new: float) -> bool:
    """Return True if two estimates of a table's rows differ so much that the tables must differ; -1 is unknown."""
    return old >= 0 and new >= 0 and max(old, new) > _OTHER_ROWS * max(min(old, new), 1)


def _differing_object(text: str, grounds: CauseContext, kind: str) -> str:
    """Return the first view or function in a text whose definition differs between the sides, or ""."""
    old: Mapping[str, str] = getattr(grounds.old, kind)
    new: Mapping[str, str] = getattr(grounds.new, kind)
    is_same_version = grounds.old.major == grounds.new.major
    first = named_objects(text, old, grounds.path)
    # A view or function may be reached through another one.
    inner = [name for outer in first for name in named_objects(old[outer], old, grounds.path) if name != outer]
    for name in (*first, *inner):
        if name not in new or not _are_same(old[name], new[name], is_same_version=is_same_version):
            return name
    return ""


def _are_same(old: str, new: str, *, is_same_version: bool) -> bool:
    """Return True if two definitions are equal, ignoring differences in how server versions write them."""
    from dbdyno.move.database.compare import normalised_text

    is_verbatim = old.startswith("CREATE ") and not re.search(r"\bBEGIN ATOMIC\b|\bRETURN \(", old)
    if old == new or is_same_version or is_verbatim:
        return old == new
    return normalised_text(old) == normalised_text(new)


def _reserved_word(text: str, message: str, grounds: CauseContext) -> str:
    near = re.search(r'"([^"]+)"', message)
    added = grounds.new.keywords - grounds.old.keywords
    if near and near[1].lower() in added:
        return near[1].lower()
    return next((word for word in words_of(text) if word in added), "")


def _sequence_behind(text: str, grounds: CauseContext) -> str:
    behind = {
        column.rpartition(".")[0]: column for column in grounds.new.sequences if column not in grounds.old.sequences
    }
    return next((grounds.new.sequences[behind[table]] for table in named_objects(text, behind, grounds.path)), "")


def _collation(text: str, grounds: CauseContext) -> str:
    words = set(words_of(text))
    old, new = grounds.old, grounds.new
    tables = set(named_objects(text, {column.rpartition(".")[0] for column in old.columns}, grounds.path))
    for column, kind in old.columns.items():
        table, _, name = column.rpartition(".")
        if table not in tables or name not in words:
            continue
        found = new.columns.get(column)
        if found is not None and found != kind:
            return f"column {column} is {found} and was {kind}"
        collation = kind.partition(" collate ")[2]
        if collation and (versions := _versions(collation, grounds)):
            return f"collation {collation} of column {column} has version {versions[1]} and had {versions[0]}"
    if old.collation != new.collation:
        return f"the database's collation is {new.collation} and was {old.collation}"
    if versions := _versions("", grounds):
        return f"the database's collation {new.collation} has version {versions[1]} and had {versions[0]}"
    return ""


def _versions(collation: str, grounds: CauseContext) -> tuple[str, str] | None:
    """Return both versions of a collation if both are known and differ."""
    old, new = (side.collation_versions.get(collation) for side in (grounds.old, grounds.new))
    return (old, new) if old is not None and new is not None and old != new else None


def _indexes(plan: ExplainedPlan | None) -> Sequence[str]:
    return list(_indexes_below(plan.plan, "")) if plan is not None else []


def _indexes_below(node: Node, schema: str) -> Iterator[str]:
    """Yield a plan's indexes with the schema of their table, which a bitmap index scan has only in its parent node."""
    schema = node.schema if node.relation else schema
    if node.index:
        yield f"{schema}.{node.index}" if schema else node.index
    for child in node.children:
        yield from _indexes_below(child, schema)


def _tables(plan: ExplainedPlan | None) -> set[str]:
    return {node.relation_name for _, node in walk(plan.plan) if node.relation} if plan is not None else set()
