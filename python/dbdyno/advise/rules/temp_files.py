"""Rule: statements that sort or hash on disk, compared with work_mem."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import GIB, MIB, beginning, block_bytes, count, setting_size, share, size
from dbdyno.advise.kinds import Setting, Statement
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_BYTES = 64 * MIB
LEAST_SHARE = 0.01
MEMORY_PER_DISK = 3
"""Ratio of the space that rows take in memory to that in a temporary file: two to three."""
MOST = 5


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement, most temporary I/O first."""
    work_mem = facts.setting("work_mem")
    statements = facts.rows_of(Statement)
    total_ms = sum(one.ms for one in statements)
    block = block_bytes(facts)
    found = sorted(statements, key=lambda one: (-(one.temp_ms or 0), -one.temp_written))
    spilled = [one for one in found if one.temp_written * block >= LEAST_BYTES and one.calls]
    for one in spilled[:MOST]:
        timed = one.temp_ms / total_ms if one.temp_ms is not None and total_ms > 0 else None
        if timed is None or timed >= LEAST_SHARE:
            yield _advice(one, timed, one.ms / total_ms if total_ms > 0 else 0.0, block, work_mem)


def _advice(statement: Statement, timed: float | None, whole: float, block: int, work_mem: Setting | None) -> Advice:
    """Return the advice for one statement.

    Args:
        statement: the statement.
        timed: share of all statement time that was spent on its temporary I/O, or None if not timed.
        whole: the statement's share of all statement time. It is the upper bound of the saving, since passes over
            spilled rows are CPU time that is not counted separately.
        block: block size in bytes.
        work_mem: the setting.
    """
    written = statement.temp_written * block
    wanted = MEMORY_PER_DISK * written / statement.calls
    place = f"pg_stat_statements, queryid {statement.identifier}"
    evidence = [
        Evidence("temporary blocks written", statement.temp_written, "count", f"{place}, temp_blks_written"),
        Evidence("calls", statement.calls, "count", f"{place}, calls"),
        Evidence("work_mem", work_mem.bytes if work_mem else None, "bytes", "pg_settings"),
    ]
    if statement.temp_ms is not None:
        evidence.append(Evidence("time of temporary I/O", statement.temp_ms * 1e6, "ns", f"{place}, temp_blk_*_time"))
    expected = (
        f"a part of the statement's {share(whole)} of all statement time: the temporary I/O, which is {share(timed)},"
        " and the passes over these files, which are not counted separately"
        if timed is not None
        else "the temporary I/O and the passes over these files; no time was measured (track_io_timing, PostgreSQL 15)"
    )
    proposed = setting_size(wanted) if wanted <= GIB else ""
    fix: tuple[str, ...] = (f"set local work_mem = '{proposed}'  -- in the transaction that runs it",)
    if not proposed:
        fix = ("-- more than 1 GB for one node: have the statement sort or hash fewer rows or columns",)
    return Advice(
        f"a call of “{beginning(statement.text)}” writes {size(written / statement.calls)} of temporary files"
        f" ({count(statement.calls)} calls)",
        tuple(evidence),
        expected + f"; in memory it would need about {size(wanted)}",
        fix,
        stake=None if timed is None else whole,
        subject=f"statement {statement.identifier}",
        proposed=proposed,
    )


RULE = Rule(
    name="temp_files",
    family="memory",
    title="Statements that sort or hash on disk",
    reads=(Setting, Statement),
    condition="a statement wrote 64 MB of temporary files or more; if their I/O was timed, it took 1 % of statement "
    "time or more",
    expects="the time of temporary I/O; a spill that stays in the page cache is cheap and gains little",
    risk="work_mem applies to each sort and hash in each parallel worker, times hash_mem_multiplier: set it for the "
    "statement or role, not for the server",
    source="PostgreSQL documentation, Resource Consumption (2025); pg_stat_statements",
    refuted="the statement takes as long with the larger work_mem",
    judge=judge,
    setting="work_mem",
    of_statement=True,
)
