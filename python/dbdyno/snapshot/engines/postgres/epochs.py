"""Epochs of PostgreSQL's counters: restarts, crashes, failovers, resets, evictions.

How each is recognized on PostgreSQL 12 to 18 (a test forces each one on a real server):

    crash      the server lost its statistics: two or more of the shared views began again at
               exactly the same instant. A manual reset gives each a different instant. The start
               time of the server proves nothing: it stays when only a backend was killed
    restart    it started again and kept its statistics: the counters continue
    failover   another cluster (system identifier), or another node at another address answers. A
               promotion in place keeps the counters, and is reported without invalidating them
    reset      pg_stat_reset() of a database. Its `stats_reset` also changes when one table was
               reset: then a counter that did not fall, and a table that nobody touched, prove that
               the rest was kept
    evicted    pg_stat_statements evicted entries (`dealloc`); without its info view (12, 13)
               this is assumed as soon as an entry is gone
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.sql_text import quoted
from dbdyno.snapshot.engines.view import Verdict
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.reading.difference import SUBTRACTED

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.ends import Ends
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.sums.batch import Batch

    Verdicts = dict[tuple[str, str | None], Verdict]

SHARED_VIEWS = (
    "pg_stat_bgwriter",
    "pg_stat_archiver",
    "pg_stat_wal",
    "pg_stat_checkpointer",
    "pg_stat_slru",
    "pg_stat_io",
)
"""The views whose reset time shows when the server's statistics began to count."""


def judge(interval: Ends) -> Verdicts:
    """Return a verdict for each scope; the one for `("cluster", None)` applies to the whole interval."""
    found: Verdicts = {}
    cluster = _cluster(interval)
    if cluster is not None:
        found["cluster", None] = cluster
    if cluster is not None and cluster.word in ("crash", "failover"):
        for scope in ("database", "objects"):
            found |= {(scope, str(oid)): cluster for oid in _databases(interval)}
        found["shared", None] = cluster
    else:
        found |= dict(_reset_views(interval))
        found |= dict(_reset_databases(interval))
    found |= dict(_unread_databases(interval, found))
    statements = _statements(interval, cluster)
    if statements is not None:
        found["statements", None] = statements
    return found


def _cluster(interval: Ends) -> Verdict | None:
    old, new = interval.before.facts, interval.after.facts
    started = new.get("started_us")
    restarted = _moved(old, new, "started_us")
    if _moved(old, new, "identity"):
        return Verdict("failover", f"another cluster answers: {_how(old, new)}")
    if restarted and _moved(old, new, "address"):
        why = f"another server answers: {new['address']} instead of {old['address']}"
        return Verdict("failover", why)
    lost = _lost_at(interval)
    if lost is not None:
        how = (
            "the server ended without a clean shutdown"
            if restarted
            else "a server process was killed, and the server reinitialized"
        )
        return Verdict("crash", f"statistics were lost at {instant_text(lost)}: {how}", lost)
    if restarted:
        why = f"the server was restarted at {instant_text(started)}; the counters were kept"
        return Verdict("restart", why, started)
    if _moved(old, new, "in_recovery") or _moved(old, new, "timeline"):
        why = "the standby was promoted; its counters continue"
        return Verdict("ok", why)
    return None


def _how(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return why the system identifier differs; pg_upgrade, for example, creates a new cluster with new statistics."""
    words = upgraded(old, new)
    return f"it was {words}, or replaced; its statistics restarted" if words else "the system identifier is different"


def upgraded(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return in words from which version to which the server was upgraded; empty if it was not upgraded."""
    versions = [int(one.get("version_num") or 0) // 10000 for one in (old, new)]
    if not 0 < versions[0] < versions[1]:
        return ""
    names = [str(one.get("version")).split(" ")[0] for one in (old, new)]
    return f"upgraded from {names[0]} to {names[1]}"


def _moved(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> bool:
    """Return True if a fact is known at both ends of the interval and differs."""
    return None not in (old.get(name), new.get(name)) and old[name] != new[name]


def _lost_at(interval: Ends) -> int | None:
    """Return the instant at which two or more shared views began again, or None."""
    begun: Counter[int] = Counter()
    for view in SHARED_VIEWS:
        resets = [_reset_times(interval, view, end) for end in (0, 1)]
        if None not in resets:
            begun.update((resets[1] or set()) - (resets[0] or set()))
    return next((at for at, views in begun.most_common(1) if views > 1), None)


def _reset_times(interval: Ends, view: str, end: int) -> set[int] | None:
    """Return the reset times of a view's rows at one end, or None if it was not read."""
    if not interval.has(view):
        return None
    return {int(at) for (at,) in interval.peek(view, end, "stats_reset") if at is not None}


def _reset_views(interval: Ends) -> Iterator[tuple[tuple[str, str | None], Verdict]]:
    """Yield verdicts on shared views with one row that were reset."""
    for view in SHARED_VIEWS:
        times = [_reset_times(interval, view, end) for end in (0, 1)]
        new = (times[1] or set()) - (times[0] or set())
        if None not in times and len(times[1] or ()) == 1 and new:
            at = next(iter(new))
            yield (f"view:{view}", None), Verdict("reset", f"reset at {instant_text(at)}", at)


def _reset_databases(interval: Ends) -> Iterator[tuple[tuple[str, str | None], Verdict]]:
    view = "pg_stat_database"
    if not interval.has(view):
        return
    known_resets = [dict(interval.peek(view, end, "datid", "stats_reset")) for end in (0, 1)]
    if known_resets[0] == known_resets[1]:
        return
    before, after = interval.ends(view)
    names = [quoted(c.name) for c in interval.after.columns(view) if c.kind == "counter"]
    known = {c.name for c in interval.before.columns(view)}
    fell = " or ".join(f"b.{n} < a.{n}" for n in names if n.strip('"') in known)
    rows = interval.query(
        f"select b.datid, b.datname, b.stats_reset as at, {fell} as fell"
        f" from {before} a join {after} b on a.datid = b.datid"
        " where b.stats_reset is distinct from a.stats_reset and b.stats_reset is not null"
    )
    for row in rows:
        if not row["fell"] and _was_kept(interval, row["datid"]):
            continue
        how = "pg_stat_reset()" if row["fell"] else "a reset of one table or of all tables"
        verdict = Verdict("reset", f"{how} in {row['datname']} at {instant_text(row['at'])}", row["at"])
        for scope in ("database", "objects"):
            yield (scope, str(row["datid"])), verdict


def _was_kept(interval: Ends, datid: int) -> bool:
    """Return True if an untouched table with unchanged counts proves that the whole database was not reset."""
    view = "pg_stat_user_tables"
    if not interval.has(view):
        return False
    before, after = interval.ends(view)
    columns = [quoted(c.name) for c in interval.after.columns(view) if c.kind in SUBTRACTED]
    same = " and ".join(f"a.{n} is not distinct from b.{n}" for n in columns)
    some = " + ".join(f"coalesce(a.{n}, 0)" for n in columns)
    found = interval.query(
        f"select 1 from {before} a join {after} b on a.datid = b.datid and a.relid = b.relid"
        f" where a.datid = {int(datid)} and {same} and {some} > 0 limit 1"
    )
    return bool(found)


def _databases(interval: Ends) -> list[int]:
    """Return the oids of databases that either end has."""
    view = "pg_stat_database"
    if not interval.has(view):
        return []
    before, after = interval.ends(view)
    rows = interval.query(f"select datid from {before} union select datid from {after}")
    return [int(row["datid"]) for row in rows]


def _unread_databases(interval: Ends, judged: Verdicts) -> Iterator[tuple[tuple[str, str | None], Verdict]]:
    """Yield verdicts on databases, or on single views of a database, that only one end of the interval has."""
    if not interval.has("pg_stat_database"):
        return
    oids = {name: str(datid) for name, datid in interval.peek("pg_stat_database", 1, "datname", "datid")}
    ends = (interval.before, interval.after)
    read = [set(end.facts.get("databases") or ()) for end in ends]
    for name in read[0] ^ read[1]:
        number = (ends[0] if name in read[1] else ends[1]).number
        if name in oids and ("objects", oids[name]) not in judged:
            why = f"the database {name} was not read in snapshot {number}"
            yield ("objects", oids[name]), Verdict("partial", why)
    for end in ends:
        for problem in end.facts.get("problems") or ():
            oid = oids.get(problem["database"])
            scope = problem["view"] if problem["view"] == "objects" else f"view:{problem['view']}"
            if oid is not None and ("objects", oid) not in judged:
                # Without a snapshot number, so that an interval gets one message, which also says how much of its time
                # is covered.
                own = "" if problem["view"] == "objects" else f"{problem['view']} of "
                why = f"{own}the database {problem['database']} was not read: {problem['problem']}"
                yield (scope, oid), Verdict("partial", why)


def _statements(interval: Ends, cluster: Verdict | None) -> Verdict | None:
    view, info = "pg_stat_statements", "pg_stat_statements_info"
    if not interval.has(view):
        return None
    if cluster is not None and cluster.word == "failover":
        return cluster
    if interval.has(info):
        return _by_info(interval, info)
    before, after = interval.ends(view)
    keys = ", ".join(quoted(c.name) for c in interval.after.columns(view) if c.kind == "key")
    gone = interval.query(f"select count(*) as n from (select {keys} from {before} except select {keys} from {after})")[
        0
    ]["n"]
    if gone:
        return Verdict("evicted", f"{gone} entries of pg_stat_statements were evicted or reset")
    return None


def _by_info(interval: Ends, info: str) -> Verdict | None:
    """Return the verdict from the extension's own info view (PostgreSQL 14 and later), or None."""
    ((old, was),), ((new, at),) = (interval.peek(info, end, "dealloc", "stats_reset") for end in (0, 1))
    if was != at:
        return Verdict("reset", f"pg_stat_statements was reset at {instant_text(at)}", at)
    if old != new:
        return Verdict("evicted", f"pg_stat_statements evicted entries {new - old} times")
    return None


def refine(interval: Interval | Batch, view: str) -> None:
    """Apply PostgreSQL's own rules to a view's difference.

    If an index disappeared and one with its name appeared, it was rebuilt (REINDEX CONCURRENTLY transfers the counts)
    or recreated (they begin at zero), which cannot be distinguished. A table's sums over its indexes are unknown if one
    of them disappeared.
    """
    same = "".join(f" and g.{key} = {view}.{key}" for key in interval.part_keys)
    if view in ("pg_stat_user_indexes", "pg_statio_user_indexes"):
        interval.connection.execute(
            f"update {view} set verdict = 'partial',"
            " why = 'rebuilt, or dropped and created again under this name'"
            + "".join(f", {name} = null" for name in _counters(interval, view))
            + f" where life = 'new' and exists (select 1 from {view} g where g.life = 'gone'"
            f" and g.datid = {view}.datid and g.relid = {view}.relid"
            f" and g.indexrelname = {view}.indexrelname{same})"
        )
    if view in ("pg_stat_user_tables", "pg_statio_user_tables"):
        indexes = interval.table("pg_stat_user_indexes") if interval.has("pg_stat_user_indexes") else None
        sums = [c.name for c in interval.counters(view) if c.kind == "sum"]
        keys = ", ".join((*interval.part_keys, "datid", "relid"))
        if indexes is not None and sums:
            interval.connection.execute(
                f"update {view} set why = 'an index was dropped in between'"
                + "".join(f", {name} = null" for name in sums)
                + f" where verdict = 'ok' and life = 'kept' and ({keys}) in"
                f" (select ({keys}) from {indexes} where life = 'gone')"
            )


def _counters(interval: Interval | Batch, view: str) -> list[str]:
    return [quoted(c.name) for c in interval.counters(view)]
