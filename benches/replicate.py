"""A large trace from a small one: copies one after the other, the clock of each shifted.

Every `tim=` moves on by the length of the source, so that time goes forward; everything else stays
as it is. A header and lines before the first record are written once.
"""

from __future__ import annotations

import re
from pathlib import Path

_TIM = re.compile(rb"(?<=[, ]tim=)\d+")
_FIRST = re.compile(rb"^(?:=====|PARS|EXEC|FETCH|WAIT|CLOSE|\*\*\* \d)", re.MULTILINE)


def replicate(source: bytes, out: Path, megabytes: int) -> int:
    """Writes `out` until it has so many megabytes (10^6 bytes); returns its size in bytes."""
    begin = _FIRST.search(source)
    start = begin.start() if begin else 0
    header, body = source[:start], source[start:]
    if not body.endswith(b"\n"):
        body += b"\n"
    tims = [int(found) for found in _TIM.findall(body)]
    template = _TIM.sub(b"%d", body.replace(b"%", b"%%"))
    length = max(tims) - min(tims) + 1000
    written = 0
    with out.open("wb") as file:
        written += file.write(header)
        copy = 0
        while written < megabytes * 1_000_000:
            written += file.write(template % tuple(tim + copy * length for tim in tims))
            copy += 1
    return written


def fixture(calls: int = 4000, reads: tuple[int, ...] = (1,)) -> bytes:
    """A trace of our own making: executions with reads, fetches and round trips, as a busy session of 19c writes them.

    `reads` is the number of reads of each execution, in rotation.
    """
    lines = [
        "Trace file made by dbdyno",
        "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production",
        "Version 19.20.0.0.0",
        "Instance name: made",
        "",
        "*** 2026-01-05T10:00:00.000000+00:00 (PDB1(3))",
        "*** SESSION ID:(101.2002) 2026-01-05T10:00:00.000010+00:00",
        "*** MODULE NAME:(bench) 2026-01-05T10:00:00.000020+00:00",
        "",
    ]
    tim, cursor = 900_000_000_000, 140_000_000_001_000
    sql = "select name, amount from orders where customer = :1 and day between :2 and :3"
    lines += [
        "=====================",
        f"PARSING IN CURSOR #{cursor} len={len(sql)} dep=0 uid=84 oct=3 lid=84 tim={tim} "
        "hv=1388734953 ad='7f3a9c10' sqlid='0puj8t19ct7nn'",
        sql,
        "END OF STMT",
    ]
    for at in range(calls):
        ela = 180 + at * 7919 % 2400
        block = 4000 + at * 31 % 90_000
        tail = f"dep=0,og=1,plh=2938593747,tim={tim + 90}"
        more = reads[at % len(reads)] - 1
        lines += [
            f"EXEC #{cursor}:c={40 + at % 9},e=61,p=0,cr=0,cu=0,mis=0,r=0,{tail}",
            f"WAIT #{cursor}: nam='SQL*Net message to client' ela= 1 driver id=1413697536 "
            f"#bytes=1 p3=0 obj#=71234 tim={tim + 95}",
            f"WAIT #{cursor}: nam='db file sequential read' ela= {ela} file#=7 "
            f"block#={block} blocks=1 obj#=71234 tim={tim + 110 + ela}",
        ]
        for after in range(more):
            lines.append(
                f"WAIT #{cursor}: nam='db file sequential read' ela= {30 + at % 50} file#=8 "
                f"block#={block + after + 1} blocks=1 obj#=71235 tim={tim + 110 + ela + (after + 1) * 100}"
            )
        ela += 100 * more
        lines += [
            f"FETCH #{cursor}:c={80 + at % 50},e={ela + 150},p=1,cr=5,cu=0,mis=0,r=10,"
            f"dep=0,og=1,plh=2938593747,tim={tim + 260 + ela}",
            f"WAIT #{cursor}: nam='SQL*Net message from client' ela= {300 + at % 700} "
            f"driver id=1413697536 #bytes=1 p3=0 obj#=71234 tim={tim + 600 + ela + at % 700}",
        ]
        tim += 1400 + ela
    return ("\n".join(lines) + "\n").encode()
