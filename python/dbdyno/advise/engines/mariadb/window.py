"""Statement time and file reads of a MariaDB server, if they cover the same time as its status counters."""

from __future__ import annotations

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.engines.mariadb.queries import DATA_FILES
from dbdyno.advise.facts import Facts
from dbdyno.advise.rule import InsufficientEvidence

LEAST_RATIO = 0.5
"""Minimum ratio of two counters of the same thing; below it, the counters do not cover the same time."""


def statement_ms(facts: Facts) -> float | InsufficientEvidence:
    """Return the total time of all statements in ms, or why it does not match the server's other counters."""
    calls = sum(one.calls for one in facts.rows_of(Digest))
    questions = facts.row_of(Status).get("questions") or 0
    total = sum(one.ms for one in facts.rows_of(Digest))
    if calls < LEAST_RATIO * questions or total <= 0:
        return InsufficientEvidence(
            f"statements are counted for {calls:,} of {questions:,} questions: the table was truncated, or "
            f"not all are instrumented",
            "enable statement/% in performance_schema.setup_instruments and wait for a day of work",
        )
    return total


def file_reads(facts: Facts) -> FileIo | InsufficientEvidence:
    """Return the reads of data files with their time, or why they differ from the reads in the status."""
    found = next((one for one in facts.rows_of(FileIo) if one.event == DATA_FILES), None)
    counted = facts.row_of(Status).get("innodb_data_reads") or 0
    reads = found.reads if found is not None else 0
    if found is None or reads < LEAST_RATIO * counted:
        return InsufficientEvidence(
            f"performance_schema counted {reads:,} reads of data files, the status {counted:,}",
            "performance_schema = ON from the server's start",
        )
    return found
