"""Evidence of a rehearsal: statements and the times of all blocks, as Parquet files; no parameter value is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import file_replacement
from dbdyno.evidence.memory import file_connection
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement

STATEMENTS = "statements.parquet"
BLOCKS = "rehearsed_blocks.parquet"


def write_evidence(folder: Path, items: Sequence[RehearsedStatement]) -> None:
    """Write `statements` (number, text, calls, total_ns, user, reason) and `rehearsed_blocks` (times per block).

    Raises:
        EvidenceError: A file cannot be written.
    """
    statements: list[tuple[object, ...]] = []
    blocks: list[tuple[object, ...]] = []
    for item in items:
        one = item.statement
        statements.append((one.number, one.text, one.calls, one.total_ns, one.user, item.reason))
        first = len(item.initial_blocks.old_ns)
        for at, (old, new) in enumerate(zip(item.old_ns, item.new_ns, strict=True)):
            blocks.append((one.number, at, at >= first, old, new))
    shapes = {
        STATEMENTS: (
            "statement uinteger, text varchar, calls bigint, total_ns bigint, login varchar, reason varchar",
            statements,
        ),
        BLOCKS: ("statement uinteger, block uinteger, confirming boolean, old_ns double, new_ns double", blocks),
    }
    import duckdb

    with file_connection() as connection:
        for name, (columns, rows) in shapes.items():
            connection.execute(f"create or replace temp table kept ({columns})")
            if rows:
                marks = ", ".join("?" for _ in rows[0])
                connection.executemany(f"insert into kept values ({marks})", rows)  # noqa: S608 - question marks
            try:
                with file_replacement(folder / name) as aside:
                    connection.table("kept").write_parquet(str(aside), compression="zstd")
            except (duckdb.Error, OSError) as error:
                raise EvidenceError(
                    f"cannot be written: {error}",
                    where=str(folder / name),
                    next_step="free disk space or check the permissions",
                ) from error
