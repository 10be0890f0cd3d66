"""Rule: statements whose temporary tables go to disk."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.engines.mariadb.window import statement_ms
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

FILES = ("wait/io/file/aria/MAD", "wait/io/file/aria/MAI")
LEAST_TABLES, LEAST_SHARE, MOST = 10, 0.01, 5


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding per statement that makes temporary tables on disk, the one with the most tables first."""
    found = [one for one in facts.rows_of(Digest) if one.temp_disk_tables >= LEAST_TABLES and one.calls and one.text]
    if not found:
        return
    total = statement_ms(facts)
    if isinstance(total, InsufficientEvidence):
        yield total
        return
    aria_ms = sum(one.ms for one in facts.rows_of(FileIo) if one.event in FILES)
    for one in sorted(found, key=lambda digest: -digest.temp_disk_tables)[:MOST]:
        # Aria's files belong to temporary tables on disk, and to tables of that engine.
        if min(aria_ms, one.ms) / total >= LEAST_SHARE:
            yield _advice(facts, one, aria_ms, total)


def _advice(facts: Facts, digest: Digest, aria_ms: float, total: float) -> Advice:
    """Return the advice for one statement.

    The work on temporary tables on disk is not timed separately, so all of the statement's time is the upper bound of
    what the fix can save.
    """
    files, stake = min(aria_ms, digest.ms) / total, min(digest.ms / total, 1.0)
    place = f"events_statements_summary_by_digest, {digest.identifier}"
    memory = facts.setting("tmp_memory_table_size")
    return Advice(
        f"“{beginning(digest.text)}” has {count(digest.temp_disk_tables / digest.calls)} temporary tables on disk a"
        f" call ({count(digest.calls)} calls)",
        (
            Evidence(
                "temporary tables on disk", digest.temp_disk_tables, "count", f"{place}, SUM_CREATED_TMP_DISK_TABLES"
            ),
            Evidence("temporary tables", digest.temp_tables, "count", f"{place}, SUM_CREATED_TMP_TABLES"),
            Evidence("calls", digest.calls, "count", f"{place}, COUNT_STAR"),
            Evidence("its time", digest.ms * 1e6, "ns", f"{place}, SUM_TIMER_WAIT"),
            Evidence("I/O time of Aria files", aria_ms * 1e6, "ns", f"file_summary_by_event_name, {', '.join(FILES)}"),
            Evidence("tmp_memory_table_size", memory.bytes if memory else None, "bytes", "global variables"),
        ),
        f"a part of the statement's {share(stake)} of the time of statements: up to {share(files)} for the files that"
        " temporary tables (and tables of Aria) are in, and the work on these tables, which is not counted separately",
        (
            "-- does it group or sort by TEXT or BLOB columns? Such tables are always on disk: select fewer columns, or"
            " join them afterwards",
            "-- else, in the session that runs it: set session tmp_memory_table_size = ..., max_heap_table_size = ...",
        ),
        stake=stake,
        subject=f"statement {digest.identifier}",
    )


RULE = Rule(
    name="temp_tables",
    family="memory",
    title="Statements with temporary tables on disk",
    reads=(Setting, Status, Digest, FileIo),
    condition="a statement created 10 or more temporary tables on disk, and files of Aria took 1 % of the time of "
    "statements",
    expects="the I/O time of these files; tables that stay in the page cache are cheap and gain little",
    risk="tmp_memory_table_size applies to each temporary table of each session",
    source="MariaDB documentation, Internal Temporary Tables and Performance Schema (2025)",
    refuted="the statement takes as long with the larger setting, or still has tables on disk",
    judge=judge,
    engines=("mariadb",),
    of_statement=True,
)
