"""Two small sets of traces, written anew each time; in the second set, commits take a fifth longer."""

from __future__ import annotations

from pathlib import Path

ORDERS = 40
FILES = 6


def two_sets(folder: Path) -> tuple[Path, Path]:
    """Write the traces before and after; return both folders."""
    return tuple(_written(folder / name, factor) for name, factor in (("before", 1.0), ("after", 1.2)))  # type: ignore[return-value]


def _written(folder: Path, factor: float) -> Path:
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"ORCL_ora_{number + 1}.trc").write_text(_trace(number, factor))
    return folder


def _trace(number: int, factor: float) -> str:
    at = 1_000_000_000
    lines = [
        f"*** 2026-11-22 10:00:{number:02d}.000",
        f"*** SESSION ID:({11 + number}.1) 2026-11-22 10:00:{number:02d}.000",
        "=====================",
        f"PARSING IN CURSOR #1 len=32 dep=0 uid=104 oct=2 lid=104 tim={at} hv=1 ad='a' sqlid='aaaaaaaaaaaa1'",
        "insert into orders values (:1)",
        "END OF STMT",
        f"PARSE #1:c=90,e=100,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=1,plh=0,tim={at}",
    ]
    for order in range(ORDERS):
        spread = 1 + 0.1 * ((order * 7 + number * 3) % 11) / 11
        at += 500
        lines.append(f"EXEC #1:c=200,e=250,p=0,cr=1,cu=5,mis=0,r=1,dep=0,og=1,plh=0,tim={at}")
        sync = round(2000 * factor * spread)
        at += sync
        lines.append(f"WAIT #1: nam='log file sync' ela= {sync} buffer#=1 sync scn=2 p3=0 obj#=-1 tim={at}")
        lines.append(f"XCTEND rlbk=0, rd_only=0, tim={at}")
        at += 700
        lines.append(f"WAIT #1: nam='SQL*Net message from client' ela= 600 driver id=1 #bytes=1 p3=0 obj#=-1 tim={at}")
    return "\n".join(lines) + "\n"
