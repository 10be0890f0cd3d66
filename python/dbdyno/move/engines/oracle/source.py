"""SQL for an Oracle source: one SCN for all statements, a table's columns, and its blocks as ranges of ROWID.

The method is that of Quest's connector: extents of `dba_extents` (or `user_extents`) are cut into pieces of about equal
numbers of blocks, and each piece is read by ROWID, without an index and by only one worker. Every statement has the
same `as of scn`, so all workers read one instant without a lock, as long as the undo lasts (ORA-01555 ends the job,
which must then start again). This has not been tested with an Oracle server yet: tests only parse the statements and
check the pieces for gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.oracle.types import DescribedColumn, select_expression

SCHEME = "oracle://"
SESSION = (
    "alter session disable parallel query",
    'alter session set "_serial_direct_read" = always',
    "alter session set time_zone = 'UTC'",
    "alter session set nls_date_format = 'YYYY-MM-DD HH24:MI:SS'",
    "alter session set nls_timestamp_format = 'YYYY-MM-DD HH24:MI:SS.FF9'",
    "alter session set nls_timestamp_tz_format = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'",
    "alter session set nls_numeric_characters = '.,'",
    "set transaction read only",
)
OPTIONAL_STATEMENT = 1
"""Index in `SESSION` of the statement that may fail; it sets a hidden parameter for reads past the buffer cache."""
SCN_SQL = """
select dbms_flashback.get_system_change_number, to_char(sys_extract_utc(systimestamp), 'YYYY-MM-DD HH24:MI:SS.FF6')
from dual
"""
TABLE_SQL = """
select o.object_id, o.data_object_id, t.iot_type, t.partitioned, t.temporary
from all_tables t join all_objects o on o.owner = t.owner and o.object_name = t.table_name and o.object_type = 'TABLE'
where t.owner = :owner and t.table_name = :name
"""
COLUMNS_SQL = """
select column_name, data_type, data_precision, data_scale, char_used, virtual_column
from all_tab_cols where owner = :owner and table_name = :name and hidden_column = 'NO' order by column_id
"""
EXTENTS_SQL = """
select o.data_object_id, e.relative_fno, e.block_id, e.blocks, e.bytes
from dba_extents e
join all_objects o on o.owner = e.owner and o.object_name = e.segment_name
  and nvl(o.subobject_name, '-') = nvl(e.partition_name, '-') and o.data_object_id is not null
where e.owner = :owner and e.segment_name = :name
  and e.segment_type in ('TABLE', 'TABLE PARTITION', 'TABLE SUBPARTITION')
order by o.data_object_id, e.relative_fno, e.block_id
"""
ROWS_LAST = 32_767
"""Largest row number in a block."""


@dataclass(frozen=True)
class Address:
    """Address of an Oracle service, and the user who connects."""

    user: str
    password: str | None
    dsn: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address of the form `oracle://user:password@host:1521/service`; the port is 1521 if it is left out.

        Raises:
            MoveError: The user, the host or the service is missing.
        """
        parts = urlsplit(text)
        if not parts.hostname or not parts.username or not parts.path.strip("/"):
            raise MoveError(
                "is not an Oracle address",
                where=without_password(text),
                next_step="write oracle://user@host:1521/service",
            )
        password = None if parts.password is None else unquote(parts.password)
        dsn = f"{parts.hostname}:{parts.port or 1521}/{parts.path.strip('/')}"
        return cls(unquote(parts.username), password, dsn)


def without_password(text: str) -> str:
    """Return the address with its password removed."""
    parts = urlsplit(text)
    return f"{SCHEME}{parts.username or ''}@{parts.hostname or ''}:{parts.port or 1521}{parts.path}"


@dataclass(frozen=True)
class Extent:
    """Contiguous blocks of one segment, with its data object id and relative file number."""

    object: int
    file: int
    block: int
    blocks: int
    bytes: int


@dataclass(frozen=True)
class Piece:
    """Ranges of blocks that one worker reads."""

    ranges: tuple[Extent, ...]

    @property
    def bytes(self) -> int:
        """Return the size on disk in bytes."""
        return sum(one.bytes for one in self.ranges)


def group_extents(extents: Sequence[Extent], pieces: int) -> list[Piece]:
    """Group extents into at most `pieces` pieces of about equal numbers of blocks, splitting long extents."""
    whole = sum(one.blocks for one in extents)
    most = max(-(-whole // max(pieces, 1)), 1)
    found: list[Piece] = []
    here: list[Extent] = []
    left = most
    for extent in extents:
        rest = extent
        while rest.blocks:
            taken = min(rest.blocks, left)
            share = rest.bytes * taken // rest.blocks
            here.append(Extent(rest.object, rest.file, rest.block, taken, share))
            rest = Extent(rest.object, rest.file, rest.block + taken, rest.blocks - taken, rest.bytes - share)
            left -= taken
            if left == 0:
                found.append(Piece(tuple(here)))
                here, left = [], most
    return [*found, Piece(tuple(here))] if here else found


def quote_name(name: str) -> str:
    """Return the name in double quotes.

    Raises:
        MoveError: The name is empty, or contains a double quote or a NUL character.
    """
    if '"' in name or "\0" in name or not name:
        raise MoveError(
            f"{name!r} is not an Oracle name",
            where="--table",
            next_step="remove double quotes and NUL characters from the name",
        )
    return f'"{name}"'


def split_name(text: str, user: str) -> tuple[str, str]:
    """Return owner and table of a name; unquoted parts become upper case, and `user` is the default owner.

    Raises:
        MoveError: The text is not a table name.
    """
    parts, rest = [], text
    while rest:
        if rest.startswith('"'):
            name, closed, rest = rest[1:].partition('"')
            if not closed:
                rest = text
                break
            parts.append(name)
            rest = rest.removeprefix(".")
        else:
            name, _, rest = rest.partition(".")
            parts.append(name.upper())
    if rest or not 1 <= len(parts) <= 2 or not all(parts):
        raise MoveError(
            "is not a table name", where=f"--table {text}", next_step='write OWNER.TABLE, or "Owner"."Table"'
        )
    return (parts[0], parts[1]) if len(parts) == 2 else (user.upper(), parts[0])


def select_sql(owner: str, name: str, columns: Sequence[DescribedColumn], scn: int, piece: Piece | None) -> str:
    """Return the statement that reads a piece by its ROWID ranges, or the whole table if `piece` is None."""
    listed = ", ".join(
        f"{select_expression(one, f't.{quote_name(one.name)}')} as {quote_name(one.name)}" for one in columns
    )
    table = f"{quote_name(owner)}.{quote_name(name)}"
    hint = "/*+ no_index(t) */ "
    start = f"select {hint}{listed} from {table} as of scn {scn:d} t"  # noqa: S608
    if piece is None:
        return start
    # A union, because with "or" the optimizer may read the whole table for each range.
    return " union all ".join(
        f"{start} where t.rowid between {_rowid(one, one.block, 0)}"
        f" and {_rowid(one, one.block + one.blocks - 1, ROWS_LAST)}"
        for one in piece.ranges
    )


def _rowid(extent: Extent, block: int, row: int) -> str:
    return f"dbms_rowid.rowid_create(1, {extent.object:d}, {extent.file:d}, {block:d}, {row:d})"


def driver() -> Any:
    """Import and return python-oracledb.

    Raises:
        MoveError: python-oracledb is not installed, or too old to fetch Arrow data.
    """
    try:
        import oracledb
    except ImportError:
        raise MoveError(
            "the driver python-oracledb is not installed", where=SCHEME, next_step="run `pip install 'dbdyno[oracle]'`"
        ) from None
    if not hasattr(oracledb.Connection, "fetch_df_batches"):
        raise MoveError(
            "the installed python-oracledb is too old: it has no fetch_df_batches",
            where=SCHEME,
            next_step="install python-oracledb 3.0 or newer",
        )
    return oracledb
