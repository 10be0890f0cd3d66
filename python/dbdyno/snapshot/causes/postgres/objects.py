"""Rules that find causes in tables and indexes: dropped indexes, another plan after ANALYZE, growth, bloat."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import cast

from dbdyno.base.json_types import TableRow
from dbdyno.base.sections import Row
from dbdyno.snapshot.causes.change import HEAVIER_FACTOR, Cause, Change, Key, Pair
from dbdyno.snapshot.causes.postgres.access import indirect_statements
from dbdyno.snapshot.causes.postgres.plans import analyzed
from dbdyno.snapshot.causes.postgres.reachable_tables import WRITE, access_path
from dbdyno.snapshot.causes.statements import does_no_more_work, statement_label
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.wording import duration_text, rate_change, setting_change, three_digits

_DEAD_ROWS = 1000
_PASSED_OVER = re.compile(r"\bautovacuum_enabled=(?:off|false|no|0|f|n|of)\b", re.I)
_PLANNER = re.compile(
    r"enable_|.*_cost$|geqo|(?:from|join)_collapse_limit|effective_cache_size|default_statistics_target|plan_cache_mode|"
    r"constraint_exclusion|cursor_tuple_fraction|work_mem|hash_mem_multiplier|max_parallel_workers|jit"
)
"""Pattern of the names of settings that plans depend on."""
MORE_SCANS_FACTOR = 1.1
"""Smallest growth factor of sequential scans for which a table counts as scanned more often."""
LEAST_HOT = 0.3
"""Smallest earlier share of HOT updates for reporting that updates are no longer HOT."""
LONGER_SCAN_FACTOR, LEAST_ROWS = 1.3, 100
"""Smallest growth factor of rows per scan for a table to count as larger, and fewest rows per scan to compare."""


def dropped_indexes(change: Change) -> Iterator[Cause]:
    """Yield a cause for each index that disappeared; these are computed once, because other rules need them."""
    yield from change.compute_once("dropped_indexes", lambda: list(_dropped(change)))


def _dropped(change: Change) -> Iterator[Cause]:
    """Yield a cause for each index of the first period that is missing at the end of the second.

    The index existed at the beginning, middle or end of the first period. A statement must have become slower, or
    the table must be scanned more; otherwise the drop is only an event.
    """
    view = "pg_stat_user_indexes"
    if not change.is_in_both(view):
        return
    chain, after = change.before.chain, change.after.ends(view)[1]
    looked = [chain[at] for at in sorted({0, len(chain) // 2, len(chain) - 1})]
    keys = "datid, relid, indexrelid, relname, indexrelname"
    before = " union ".join(f"select {keys} from {relation(one, view)}" for one in looked if one.relation(view))
    if not before:
        return
    rows = change.before.query(
        f"select distinct a.indexrelname as name, a.relname, a.datid, a.relid, a.indexrelid from ({before}) a"
        f" anti join {after} b on a.datid = b.datid and a.indexrelid = b.indexrelid"
        f" where not exists (select 1 from {after} b where b.datid = a.datid and b.relid = a.relid"
        f" and b.indexrelname = a.indexrelname)"
    )
    yield from _made_anew(change, rows)
    for row in rows:
        table = change.tables.get((row["datid"], row["relid"]))
        if table is None or _successor(change, row["datid"], row["relid"]) is not None:
            continue
        slow, scans = (
            change.heavier_statements_of_table(table.name),
            (table.before.get("seq_scan", 0), table.after.get("seq_scan", 0)),
        )
        slow = slow or indirect_statements(change, (row["datid"], row["relid"]), table)
        if (not slow and scans[1] <= MORE_SCANS_FACTOR * scans[0]) or change.disappeared_early(_gone_in(change, row)):
            continue
        yield Cause(
            f"index {row['name']} on {table.name} was dropped",
            f"sequential scans of {table.name} {rate_change(*scans)}",
            slow,
            _gone_at(change, row),
            weight=3,
        )


def indirect_scans(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table now scanned by a statement that reaches it only indirectly (foreign key, view)."""
    for key, table in change.tables.items():
        whose = indirect_statements(change, key, table)
        if whose and not any(f" on {table.name} was dropped" in one.words for one in dropped_indexes(change)):
            first = max(whose, key=lambda number: change.statements[number].growth("ms"))
            scans = rate_change(table.before.get("seq_scan", 0.0), table.after.get("seq_scan", 0.0))
            words, how = _scanned(change, first, key, table.name)
            yield Cause(
                f"{words}: {statement_label(change.statements[first])}",
                f"sequential scans of {table.name} {scans}{how}",
                whose,
                weight=2.3,
            )


def _scanned(change: Change, number: Key, key: Hashable, table: str) -> tuple[str, str]:
    """Return in words why a statement scans a table that its text does not name, and further evidence."""
    way = access_path(change, number, key)
    if way is None or not way.kind:
        return f"{table} is scanned whenever this runs", ": by a foreign key, a trigger or a function"
    if way.lacks:
        return f"foreign key {way.name} has no index on {table} ({way.lacks}), which is scanned whenever this runs", ""
    return f"{table} is scanned by {way.kind} {way.name} whenever this runs", ""


def _made_anew(change: Change, rows: list[TableRow]) -> Iterator[Cause]:
    """Yield a cause for each table recreated with fewer indexes (for example by a restore or a table swap).

    A statement must have become slower. `rows` are the indexes that disappeared.
    """
    after = change.after.ends("pg_stat_user_indexes")[1]
    for old in dict.fromkeys((row["datid"], row["relid"]) for row in rows):
        new = _successor(change, *old)
        if new is None or old not in change.tables or new not in change.tables:
            continue
        gone = [row for row in rows if (row["datid"], row["relid"]) == old]
        of_new = f"select indexrelname as name from {after} where datid = {int(new[0])} and relid = {int(new[1])}"
        kept = {row["name"] for row in change.after.query(of_new)}
        name, slow = change.tables[new].name, change.statements_of_table(change.tables[new].name)
        if len(kept) >= len(gone) or not slow:
            continue
        lost = sorted({row["name"] for row in gone} - kept)
        scans = (change.tables[old].before.get("seq_scan", 0), change.tables[new].after.get("seq_scan", 0))
        words = f"table {name} was recreated without its index{'' if len(lost) == 1 else 'es'} {', '.join(lost)}"
        yield Cause(
            words, f"sequential scans of {name} {rate_change(*scans)}", slow, _gone_at(change, gone[0]), weight=3
        )


def _successor(change: Change, datid: int, relid: int) -> tuple[int, int] | None:
    """Return the (datid, relid) of the table that took the name of this one after it was dropped, or None."""
    first, middle, last = change.states
    old = first.get((datid, relid)) or middle.get((datid, relid))
    if old is None or (datid, relid) in last:
        return None
    names = ("datid", "schemaname", "relname")
    found = (one for key, one in last.items() if key not in first and all(one[name] == old[name] for name in names))
    return next(((datid, int(str(one["relid"]))) for one in found), None)


def new_indexes(change: Change) -> Iterator[Cause]:
    """Yield a cause for new indexes on a table if a statement that writes to it does more work for the same row count.

    Each new index has to be written to as well.
    """
    rows = change.rows_of_ends(
        "pg_stat_user_indexes",
        "select a.indexrelname as name, a.datid, a.relid from {after} a"
        " anti join {before} b on a.datid = b.datid and (a.indexrelid = b.indexrelid"
        " or (a.relid = b.relid and a.indexrelname = b.indexrelname)) order by 1",
    )
    for key in dict.fromkeys((row["datid"], row["relid"]) for row in rows):
        table = change.tables.get(key) if key in change.states[0] else None
        names = [row["name"] for row in rows if (row["datid"], row["relid"]) == key]
        if table is None:
            continue
        hot = _hot(table)
        writes = frozenset(n for n in _writing(change, table) if _writes(change.statements[n], lost_hot=_lost(hot)))
        if not writes:
            continue
        first = max(writes, key=lambda n: change.statements[n].growth("ms"))
        work = " → ".join(map(three_digits, change.statements[first].per_call("work")))
        made = (
            f"index {names[0]} on {table.name} was" if len(names) == 1 else f"{len(names)} indexes on {table.name} were"
        )
        what = "updates are no longer HOT" if _lost(hot) else "writes are dearer"
        said = [f"HOT updates {hot[0]:.0%} → {hot[1]:.0%}"] if _lost(hot) else []
        said += [f"blocks per call {work}", ", ".join(names[:5])]
        yield Cause(f"{made} created: {what}", "; ".join(said), writes, weight=2.6)


def _hot(table: Pair) -> tuple[float, float]:
    """Return the share of updates that are HOT (write to no index), before and after."""
    sides = _sides(table)
    found = [s.get("n_tup_hot_upd", 0.0) / s["n_tup_upd"] if s.get("n_tup_upd") else 0.0 for s in sides]
    return found[0], found[1]


def _lost(hot: tuple[float, float]) -> bool:
    return hot[0] >= LEAST_HOT and hot[1] <= hot[0] / 2


def _writing(change: Change, table: Pair) -> Iterator[Key]:
    """Return the statements that name a table and write rows."""
    return (n for n in change.statements_of_table(table.name, slower=False) if WRITE.match(change.statements[n].text))


def _writes(pair: Pair, *, lost_hot: bool) -> bool:
    """Return True if a statement changes about as many rows per call as before, with more work.

    If updates are no longer HOT, the additional work of a one-row update is only a few blocks. In that case only the
    growth factor of the work is tested.
    """
    (old, new), (was, now) = pair.per_call("rows"), pair.per_call("work")
    more = pair.is_heavier() or (lost_hot and was > 0 and now >= HEAVIER_FACTOR * was)
    return more and new <= HEAVIER_FACTOR * max(old, 1.0)


def _gone_in(change: Change, row: TableRow) -> Row | None:
    """Return the sub-interval in which an index disappeared, or None if it disappeared in neither period."""
    which = f"datid = {int(row['datid'])} and indexrelid = {int(row['indexrelid'])}"
    return change.last_disappearance("pg_stat_user_indexes", which)


def _gone_at(change: Change, row: TableRow) -> str:
    """Return in words the time by which an index had disappeared."""
    part = _gone_in(change, row)
    if part is not None:
        return f"before {instant_text(part['at_us'])}"
    first = relation(change.after.before, "pg_stat_user_indexes")
    which = f"datid = {int(row['datid'])} and indexrelid = {int(row['indexrelid'])}"
    there = change.after.query(f"select 1 from {first} where {which}")
    end = change.after.after if there else change.after.before
    return f"before {instant_text(end.at_ns // 1000)}"


def other_plans(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table whose rows are found by other kinds of scan after it was analyzed.

    Statements whose changed plan the log proves are left to `plans.py`.
    """
    for table in change.tables.values():
        slow = change.statements_of_table(table.name) - change.plan_proofs.keys()
        if not analyzed(table) or not slow:
            continue
        calls = [sum(getattr(change.statements[n], end)["calls"] for n in slow) for end in ("before", "after")]
        moved = _moved(table, calls)
        if moved and not _fewer_indexes(change, table.name):
            yield Cause(f"another plan since {table.name} was analyzed", ", ".join(moved), slow, weight=2.5)


def other_access_paths(change: Change) -> Iterator[Cause]:
    """Yield a cause for tables that are scanned where rows were looked up before, with the same indexes and no ANALYZE.

    Possible reasons are a planner setting, a changed function, or a plan cached for other values. If planner settings
    changed, the tables are reported together. An increase of scans without fewer lookups does not suffice: the scans
    may have been counted late, because a session reports its table counts after its statement counts.
    """
    rows = change.changed_settings()
    settings = [setting_change(r["name"], r["old"], r["new"]) for r in rows if _PLANNER.match(str(r["name"]))]
    found = list(_other_ways(change))
    if settings and len(found) > 1:
        found.sort(key=lambda one: -sum(change.statements[n].growth("ms") for n in one[1]))
        names = ", ".join(table.name for table, _, _ in found[:3]) + (" and more" if len(found) > 3 else "")
        every = frozenset[Key]().union(*(slow for _, slow, _ in found))
        yield Cause(f"other plans for {names}, with the same indexes", ", ".join(settings), every, weight=2.5)
        return
    for table, slow, moved in found:
        words = f"another plan for {table.name}, with the same indexes"
        yield Cause(words, ", ".join([*moved, *settings]), slow, weight=2.5)


def _other_ways(change: Change) -> Iterator[tuple[Pair, frozenset[Key], list[str]]]:
    """Yield each table on which scans replaced lookups, with its slower statements and the change in words."""
    for table in change.tables.values():
        slow = change.statements_of_table(table.name) - change.plan_proofs.keys()
        if _rows_scanned(change, table, slow) < LEAST_ROWS:  # with many more rows, equal work is another plan too
            slow = frozenset(n for n in slow if not does_no_more_work(change.statements[n]))
        if analyzed(table) or not slow or _fewer_indexes(change, table.name):
            continue
        calls = [sum(getattr(change.statements[n], end)["calls"] for n in slow) for end in ("before", "after")]
        more, lookups = (
            table.after.get(name, 0.0) / calls[1] - table.before.get(name, 0.0) / calls[0]
            for name in ("seq_scan", "idx_scan")
        )
        if more > 0.3 and lookups < -0.3 and (moved := _moved(table, calls)):
            beside = [
                one.name
                for one in change.tables.values()
                if analyzed(one) and slow & change.statements_of_table(one.name)
            ]
            yield table, slow, [*moved, *(f"{name} was analyzed" for name in sorted(beside))]


def _rows_scanned(change: Change, table: Pair, slow: frozenset[Key]) -> float:
    """Return how many more rows a call of the slower statements reads by sequential scans than before."""
    calls = [sum(getattr(change.statements[n], end)["calls"] for n in slow) for end in ("before", "after")]
    if not all(calls):
        return 0.0
    return float(table.after.get("seq_tup_read", 0.0) / calls[1] - table.before.get("seq_tup_read", 0.0) / calls[0])


def _moved(table: Pair, calls: list[float]) -> list[str]:
    """Return in words which kinds of scan of a table changed by more than 0.3 scans per call."""
    moved = []
    for name, label in (("seq_scan", "sequential"), ("idx_scan", "index")):
        old, new = table.before.get(name, 0.0), table.after.get(name, 0.0)
        if abs(old / calls[0] - new / calls[1]) > 0.3:
            moved.append(f"{label} scans {rate_change(old, new)}")
    return moved


def _fewer_indexes(change: Change, table: str) -> bool:
    words = (f" on {table} was dropped", f"table {table} was recreated without")
    return any(word in cause.words for cause in dropped_indexes(change) for word in words)


def grown_tables(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table with many more rows than before, if rows were added in the second period as well.

    Growth in the first period alone may have happened before it: a server counts the rows of a load when its
    transaction has ended, or a second later.
    """
    for key, table in change.tables.items():
        old, middle, new = (_state(side, key, "n_live_tup") for side in change.states)
        slow = change.heavier_statements_of_table(table.name)
        before, after = _a_scan(table)
        came = _added(change, key) >= (after - before) / 2
        if slow and (new >= 1.05 * old or came) and after >= LONGER_SCAN_FACTOR * before > 0:
            what = "rows of a sequential scan"
        elif old >= 100 and new >= 1.5 * old and new >= 1.25 * middle and slow:
            what, before, after = "rows", old, new
        else:
            continue
        grown = f"table {table.name} grew to {three_digits(after / before)} times its rows"
        yield Cause(grown, f"{what} {before:,.0f} → {after:,.0f}", slow, weight=2)


def _added(change: Change, key: Hashable) -> float:
    """Return rows inserted minus rows deleted, from the beginning of the first period to the end of the second.

    These are exact counts; live rows are counted twice if one session loaded and vacuumed them.
    """
    ends = change.states[0], change.states[-1]
    came, went = ([_state(side, key, name) for side in ends] for name in ("n_tup_ins", "n_tup_del"))
    return max(came[1] - came[0], 0.0) - max(went[1] - went[0], 0.0)


def _a_scan(table: Pair) -> tuple[float, float]:
    """Return the rows that a sequential scan read, before and after; 0 if there were too few rows or scans.

    This is exact, while the count of live rows is wrong for some time after a vacuum in the session that loaded them.
    """
    found = [
        side.get("seq_tup_read", 0.0) / side["seq_scan"] if side.get("seq_scan") else 0.0 for side in _sides(table)
    ]
    return (found[0], found[1]) if min(found) >= LEAST_ROWS else (0.0, 0.0)


def _sides(table: Pair) -> tuple[dict[str, float], dict[str, float]]:
    return table.before, table.after


def bloated_tables(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table whose dead rows pile up while live rows stay steady, with the reason if known."""
    for key, table in change.tables.items():
        dead_old, dead = _states(change, key, "n_dead_tup")
        live_old, live = _states(change, key, "n_live_tup")
        slow = change.heavier_statements_of_table(table.name)
        much = dead >= _DEAD_ROWS and dead > 0.5 * max(live, 1) and dead >= 2 * dead_old
        if not much or live > 1.5 * max(live_old, 1):
            continue
        off = change.setting("autovacuum") == ("on", "off")
        words = f"autovacuum was turned off, and {table.name} is bloated" if off else f"table {table.name} is bloated"
        if not off and _turned_off(change, key):
            words = f"autovacuum was turned off for {table.name}, which is bloated"
        evidence = f"dead rows {dead_old:.0f} → {dead:.0f} beside {live:.0f} live{_old_transaction(change)}"
        yield Cause(words, evidence, slow, weight=2.2 if slow else 0.5)


def _old_transaction(change: Change) -> str:
    """Return in words which transaction prevented cleanup for most of the second period; else ''.

    It is known from sampled sessions: as the holder of the oldest horizon, or else as the longest transaction.
    """
    history = History(change.after)
    holder = next(iter(history.horizons(1, least_us=0)), None)
    if holder is not None and holder["held"] >= 0.5e9 * change.after.seconds:
        who = " of ".join(filter(None, (holder["usename"], holder["application"])))
        return (
            f"; a transaction held back vacuum for {duration_text(holder['held'] / 1e6)} ({who}, {holder['state']}):"
            f" rows that it may see stay, back to {holder['horizon']} transactions ago"
        )
    longest = next(iter(history.transactions(1, least_us=0)), None)
    if longest is None or longest["open"] < 0.5e9 * change.after.seconds:
        return ""
    who = " of ".join(filter(None, (longest["usename"], longest["application"])))
    held = duration_text(longest["open"] / 1e6)
    return f"; a transaction was open for {held} ({who}, {longest['state']}): rows that it may see stay"


def _turned_off(change: Change, key: Hashable) -> bool:
    """Return True if a table got a storage parameter that turns autovacuum off for it."""
    view = "pg_class"
    if not change.is_in_both(view) or any(
        "options" not in {column.name for column in end.columns(view)}
        for end in (change.before.before, change.after.after)
    ):
        return False
    datid, relid = cast("tuple[int, int]", key)
    off = []
    for source in (change.before.ends(view)[0], change.after.ends(view)[1]):
        rows = change.before.query(f"select options from {source} where datid = {int(datid)} and oid = {int(relid)}")
        off.append(bool(rows) and _PASSED_OVER.search(rows[0]["options"] or "") is not None)
    return off == [False, True]


def _states(change: Change, key: Hashable, name: str) -> tuple[float, float]:
    """Return a table's value in column `name` at the beginning of the first period and at the end of the second."""
    return _state(change.states[0], key, name), _state(change.states[-1], key, name)


def _state(rows: dict[Hashable, TableRow], key: Hashable, name: str) -> float:
    return float(rows.get(key, {}).get(name) or 0)


RULES = (dropped_indexes, indirect_scans, new_indexes, other_plans, other_access_paths, grown_tables, bloated_tables)
