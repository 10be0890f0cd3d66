"""Rule: tables and indexes to put on a fast device, ranked by the seconds of reads saved per gigabyte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.advise.dialect import BOTH, is_mariadb, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import GIB, beginning, count, duration, share, size
from dbdyno.advise.kinds import Database, Setting
from dbdyno.advise.placement import FastDevice, Segment, pack
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

PAGE_CACHE_S = 0.0001
"""Maximum time [s] of a read that the page cache serves; longer reads come from a device."""
SHOWN = 20


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield the best choice among the segments that were read from a device in the interval."""
    room = facts.row_of(FastDevice).bytes
    segments = [one for one in facts.rows_of(Segment) if one.reads > 0 and one.bytes > 0]
    each_s = _read_s(facts)
    if not segments:
        return
    if each_s is not None and each_s < PAGE_CACHE_S:
        yield InsufficientEvidence(
            f"a read takes {duration(each_s)}: the page cache answers it, so a faster device saves nothing",
            "take snapshots over an interval in which devices are read",
        )
        return
    picked, bound = pack([(one.bytes, float(one.reads)) for one in segments], room)
    if not picked:
        yield InsufficientEvidence(
            f"nothing that was read fits into {size(room)}", "use a larger --fast-gb, or partition the tables"
        )
        return
    chosen = sorted((segments[at] for at in picked), key=lambda one: -one.reads / one.bytes)
    yield _advice(facts, chosen, segments, bound, each_s)


def _read_s(facts: Facts) -> float | None:
    """Return the mean time of a read in seconds in the databases of the segments, or None if reads were not timed."""
    timed = [one for one in facts.rows_of(Database) if one.reads]
    reads = sum(one.reads for one in timed)
    if not reads or any(one.read_ms is None for one in timed):
        return None
    return sum(one.read_ms or 0.0 for one in timed) / reads / 1e3


def _advice(
    facts: Facts, chosen: Sequence[Segment], every: Sequence[Segment], bound: float, each_s: float | None
) -> Advice:
    reads, total = sum(one.reads for one in chosen), sum(one.reads for one in every)
    taken = sum(one.bytes for one in chosen)
    saves = f"{count(reads)} block reads" if each_s is None else f"at most {duration(reads * each_s)} of reads"
    exact = (
        "no other choice saves more"
        if reads >= bound
        else f"a better choice saves at most {share(bound / reads - 1)} more"
    )
    return Advice(
        f"{len(chosen)} of {len(every)} tables and indexes that were read fit into"
        f" {size(facts.row_of(FastDevice).bytes)}"
        f" ({size(taken)}) and take {share(reads / total)} of the reads off the slow device: {saves}",
        tuple(_evidence(facts, chosen, reads, taken, each_s)),
        f"{exact}; reads from shared_buffers gain nothing and are not counted; {_rivals(facts, each_s)}",
        tuple(_statements_to_move(chosen) if is_mariadb(facts) else _statements(chosen)),
        level="hint",
        subject="fast device" if is_mariadb(facts) else "tablespace fast",
        source=source(facts, "InnoDB File-Per-Table Tablespaces; Performance Schema, file I/O"),
        risk=_COPIED if is_mariadb(facts) else "",
    )


_COPIED = "the copy misses rows that are written during copying; the server must be allowed to use the folder"


def _statements_to_move(chosen: Sequence[Segment]) -> Iterator[str]:
    """Yield statements for MariaDB: InnoDB places a table elsewhere only when it is created."""
    yield "-- an existing table stays where it is: create it again there, copy, and rename, without writers"
    for one in chosen:
        yield f"create table NEW like {one.name}  -- with data directory = '/fast'; insert ... select; rename table"


def _statements(chosen: Sequence[Segment]) -> Iterator[str]:
    """Yield statements for PostgreSQL, with the database if there are several."""
    several = len({one.database for one in chosen}) > 1
    for one in chosen:
        statement = f"alter {one.kind} {one.name} set tablespace fast"
        yield f"{statement}  -- in database {beginning(one.database)}" if several else statement


def _evidence(
    facts: Facts, chosen: Sequence[Segment], reads: int, taken: int, each_s: float | None
) -> Iterator[Evidence]:
    if each_s is None:
        yield Evidence("time of a read", "not timed", "text", "track_io_timing is off: gains are blocks, not seconds")
    else:
        yield Evidence("time of a read", each_s * 1e9, "ns", place(facts, "reads"))
        yield Evidence("seconds saved per GB at most", reads * each_s / (taken / GIB), "number4", "reads × time / size")
    for one in chosen[:SHOWN]:
        where = place(facts, "files" if one.kind == "table" else "index files", size(one.bytes))
        yield Evidence(f"blocks read of {one.name}", one.reads, "count", where)
    if len(chosen) > SHOWN:
        yield Evidence("more of them", len(chosen) - SHOWN, "count", "see the statements")


def _rivals(facts: Facts, each_s: float | None) -> str:
    """Return a text about other data that could use the same space on the fast device."""
    temp = sum(one.temp_bytes for one in facts.rows_of(Database))
    blocks = temp // 8192
    time = f", at most {duration(blocks * each_s)} if they were read back once at that time" if each_s and temp else ""
    return (
        f"other candidates for this space: temporary files wrote {size(temp)}{time} (temp_tablespaces); the WAL gains "
        "little, because it is written sequentially and the cache of most devices answers a flush; a flash cache "
        f"holds hot blocks of all tables, but reads per block are not counted here"
    )


RULE = Rule(
    name="placement",
    family="placement",
    title="Tables and indexes for a fast device",
    reads=(FastDevice, Segment, Setting, Database),
    condition="blocks were read from outside of shared_buffers (at 0.1 ms a read or longer if reads are timed), and "
    "some of their tables and indexes fit into --fast-gb",
    expects="the time of these reads, minus the time on the fast device; in blocks if reads are not timed",
    risk="set tablespace copies the data under an ACCESS EXCLUSIVE lock; if the device is lost, the "
    "whole cluster is lost",
    source="Guy Harrison on placing segments by physical reads (2011); PostgreSQL documentation, Tablespaces (2025)",
    refuted="read time per transaction is the same after the move, at the same load and after the warm-up",
    judge=judge,
    engines=BOTH,
)
