"""Text of a small trace, made up line by line, and the real files where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DBDYNO_DATA", ROOT.parent / "shared" / "data")) / "traces"
REAL = sorted(DATA.glob("*.trc*")) if DATA.is_dir() else []
needs_data = pytest.mark.skipif(
    not REAL, reason=f"no trace files in {DATA}; DBDYNO_DATA names them"
)

START = "2026-11-21T10:00:00.000000+00:00"


def trace(orders: int = 20, *, factor: float = 1.0, session: str = "11.1", seed: int = 1) -> str:
    """A session that places orders: parse with a literal, execute, commit, the client's turn."""
    import random

    dice = random.Random(seed)
    lines = [
        "Trace file /tmp/made_up.trc", "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0",
        "Version 19.4.0.0.0", "Instance name: test", "", f"*** {START}",
        f"*** SESSION ID:({session}) {START}", f"*** MODULE NAME:(orders) {START}", "",
    ]  # fmt: skip
    tim = 1_000_000
    for order in range(orders):
        cursor, text = 140_000 + order, f"select price from items where id = {order}"
        tim += 300
        lines += [
            "=====================",
            f"PARSING IN CURSOR #{cursor} len={len(text)} dep=0 uid=90 oct=3 lid=90 tim={tim}"
            f" hv={1000 + order} ad='7c' sqlid='{order:013d}'",
            text, "END OF STMT",
            f"PARSE #{cursor}:c=90,e=110,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=1,plh=7,tim={tim}",
        ]  # fmt: skip
        tim += 80
        read = round(20 * dice.lognormvariate(0, 0.4))
        lines.append(f"WAIT #{cursor}: nam='db file sequential read' ela= {read} file#=4 block#=9"
                     f" blocks=1 obj#=77 tim={tim - 10}")  # fmt: skip
        lines.append(f"EXEC #{cursor}:c=30,e=70,p=1,cr=3,cu=0,mis=0,r=0,dep=0,og=1,plh=7,tim={tim}")
        sync = round(factor * 500 * dice.lognormvariate(0, 0.2))
        tim += sync + 5
        lines.append(f"WAIT #0: nam='log file sync' ela= {sync} buffer#=12 sync scn=88 p3=0 obj#=-1"
                     f" tim={tim}")  # fmt: skip
        tim += 1_005
        lines.append("WAIT #0: nam='SQL*Net message from client' ela= 1000 driver id=1 #bytes=1"
                     f" p3=0 obj#=-1 tim={tim}")  # fmt: skip
    return "\n".join([*lines, ""])


def write_set(folder: Path, files: int, **more) -> Path:
    """A folder with that many traces, each of a session of its own."""
    folder.mkdir(parents=True)
    seed = more.pop("seed", 1)
    for number in range(files):
        text = trace(session=f"{number + 10}.1", seed=seed * 100 + number, **more)
        (folder / f"made_ora_{number}.trc").write_text(text)
    return folder
