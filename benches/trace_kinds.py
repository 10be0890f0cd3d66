"""Traces of several kinds, made for benches: deep recursion, many statements, many small files."""

from __future__ import annotations

import zlib
from pathlib import Path

_HEAD = (
    "Trace file made by dbdyno",
    "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production",
    "Version 19.20.0.0.0",
    "Instance name: made",
    "",
)
_FIRST_CURSOR, _FIRST_TIM = 140_000_000_001_000, 900_000_000_000


class _Trace:
    """Lines with a clock."""

    def __init__(self, session: str = "101.2002") -> None:
        self.lines = [
            *_HEAD,
            "*** 2026-01-05T10:00:00.000000+00:00 (PDB1(3))",
            f"*** SESSION ID:({session}) 2026-01-05T10:00:00.000010+00:00",
            "",
        ]
        self.tim = _FIRST_TIM

    def statement(self, cursor: int, sql: str, depth: int, sqlid: str) -> None:
        self.lines += [
            "=====================",
            f"PARSING IN CURSOR #{cursor} len={len(sql)} dep={depth} uid=84 oct=3 lid=84 tim={self.tim} "
            f"hv={zlib.crc32(sqlid.encode())} ad='7f3a9c10' sqlid='{sqlid}'",
            sql,
            "END OF STMT",
        ]

    def call(self, kind: str, cursor: int, depth: int, elapsed: int, cpu: int, work: tuple[int, int, int]) -> None:
        reads, gets, rows = work
        self.lines.append(
            f"{kind} #{cursor}:c={cpu},e={elapsed},p={reads},cr={gets},cu=0,mis=0,r={rows},"
            f"dep={depth},og=4,plh={2938593747 + depth},tim={self.tim}"
        )

    def wait(self, cursor: int, name: str, elapsed: int, parameters: str) -> None:
        self.tim += elapsed
        self.lines.append(f"WAIT #{cursor}: nam='{name}' ela= {elapsed} {parameters} obj#=-1 tim={self.tim}")

    def close(self, cursor: int, depth: int, elapsed: int) -> None:
        self.tim += elapsed
        self.lines.append(f"CLOSE #{cursor}:c=0,e={elapsed},dep={depth},type=3,tim={self.tim}")

    def bytes(self) -> bytes:
        return ("\n".join(self.lines) + "\n").encode()


def deep(turns: int = 400, depth: int = 9) -> bytes:
    """Nothing but calls, nested ten deep: each level parses, executes what lies below, fetches and closes."""
    trace = _Trace()
    for level in range(depth + 1):
        trace.statement(_cursor(level), f"select v{level} from t{level} where id = :1", level, f"0puj8t19ct7n{level}")
    for turn in range(turns):
        _level(trace, turn, 0, depth)
        trace.wait(_cursor(0), "SQL*Net message to client", 1, "driver id=1413697536 #bytes=1 p3=0")
        trace.wait(_cursor(0), "SQL*Net message from client", 290 + turn % 80, "driver id=1413697536 #bytes=1 p3=0")
    return trace.bytes()


def _cursor(level: int) -> int:
    return _FIRST_CURSOR + level * 232


def _level(trace: _Trace, turn: int, level: int, depth: int) -> tuple[int, int]:
    """One level and all below: its CPU time and its buffer gets."""
    cursor, own = _cursor(level), 20 + (turn * 7919 + level * 131) % 90
    trace.tim += 12
    trace.call("PARSE", cursor, level, 10, turn % 9, (0, 0, 0))
    begun = trace.tim
    cpu, gets = _level(trace, turn, level + 1, depth) if level < depth else (0, 0)
    trace.tim += own
    cpu, gets = cpu + own - 5 - turn % 7, gets + 3 + (turn + level) % 5
    trace.call("EXEC", cursor, level, trace.tim - begun, cpu, ((turn * level) % 2, gets, turn % 3))
    fetched = 10 + (turn * 31 + level * 17) % 40
    trace.tim += fetched + 2
    trace.call("FETCH", cursor, level, fetched, fetched - 3, (0, 4, 1))
    trace.close(cursor, level, 1 + turn % 2)
    return cpu + fetched - 3 + turn % 9, gets + 4


def many_statements(count: int = 10_001) -> bytes:
    """An application without bind variables: each statement is parsed, executed and fetched once."""
    trace = _Trace()
    for at in range(count):
        cursor = _FIRST_CURSOR + at % 50 * 232
        trace.statement(cursor, f"select name from orders where id = {at}", 0, f"{at:013d}")
        trace.tim += 50
        trace.call("PARSE", cursor, 0, 40, 30, (0, 0, 0))
        trace.tim += 30
        trace.call("EXEC", cursor, 0, 20, 10, (0, 0, 0))
        trace.wait(cursor, "db file sequential read", 200, f"file#=7 block#={at} blocks=1")
        trace.tim += 40
        trace.call("FETCH", cursor, 0, 240, 15, (1, 3, 1))
        trace.lines += [
            f"STAT #{cursor} id=1 cnt=1 pid=0 pos=1 obj=71234 op='TABLE ACCESS BY INDEX ROWID ORDERS "
            "(cr=3 pr=1 pw=0 str=1 time=230 us cost=2 size=20 card=1)'",
            f"STAT #{cursor} id=2 cnt=1 pid=1 pos=1 obj=71235 op='INDEX UNIQUE SCAN ORDERS_PK "
            "(cr=2 pr=0 pw=0 str=1 time=20 us cost=1 size=0 card=1)'",
        ]
        trace.tim += 700
    return trace.bytes()


def small_files(folder: Path, count: int = 5000) -> None:
    """A session each, with a few statements: what an application server leaves in an hour."""
    folder.mkdir(parents=True)
    for number in range(count):
        trace = _Trace(f"{number + 10}.{number}")
        for at in range(4):
            trace.statement(_cursor(at), f"select v{at} from t{at} where id = :1", 0, f"{at:013d}")
            _level(trace, number + at, 0, at)
            trace.wait(_cursor(at), "SQL*Net message to client", 1, "driver id=1413697536 #bytes=1 p3=0")
            trace.wait(_cursor(at), "SQL*Net message from client", 300, "driver id=1413697536 #bytes=1 p3=0")
        (folder / f"made_ora_{number}.trc").write_bytes(trace.bytes())
