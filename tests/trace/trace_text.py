"""Text of a small synthetic trace, built line by line, and the real files if they are available."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DBDYNO_DATA", ROOT.parent / "shared" / "data")) / "traces"
REAL = sorted(DATA.glob("*.trc*")) if DATA.is_dir() else []
BY_SIZE = sorted(REAL, key=lambda path: path.stat().st_size)
needs_data = pytest.mark.skipif(not REAL, reason=f"no trace files in {DATA}; DBDYNO_DATA names them")

START = "2026-11-21T10:00:00.000000+00:00"


def header(session: str) -> list[str]:
    """Return the first lines of the trace of a session."""
    return [
        "Trace file /tmp/made_up.trc",
        "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0",
        "Version 19.4.0.0.0",
        "Instance name: test",
        "",
        f"*** {START}",
        f"*** SESSION ID:({session}) {START}",
    ]


def trace(orders: int = 20, *, factor: float = 1.0, session: str = "11.1", seed: int = 1) -> str:
    """Return the trace of a session that places orders: parse with a literal, execute, commit, wait for the client."""
    import random

    dice = random.Random(seed)
    lines = [*header(session), f"*** MODULE NAME:(orders) {START}", ""]
    tim = 1_000_000
    for order in range(orders):
        cursor, text = 140_000 + order, f"select price from items where id = {order}"
        tim += 300
        lines += [
            "=====================",
            f"PARSING IN CURSOR #{cursor} len={len(text)} dep=0 uid=90 oct=3 lid=90 tim={tim}"
            f" hv={1000 + order} ad='7c' sqlid='{order:013d}'",
            text,
            "END OF STMT",
            f"PARSE #{cursor}:c=90,e=110,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=1,plh=7,tim={tim}",
        ]
        tim += 80
        read = round(20 * dice.lognormvariate(0, 0.4))
        lines.append(
            f"WAIT #{cursor}: nam='db file sequential read' ela= {read} file#=4 block#=9"
            f" blocks=1 obj#=77 tim={tim - 10}"
        )
        lines.append(f"EXEC #{cursor}:c=30,e=70,p=1,cr=3,cu=0,mis=0,r=0,dep=0,og=1,plh=7,tim={tim}")
        sync = round(factor * 500 * dice.lognormvariate(0, 0.2))
        tim += sync + 5
        lines.append(f"WAIT #0: nam='log file sync' ela= {sync} buffer#=12 sync scn=88 p3=0 obj#=-1 tim={tim}")
        tim += 1_005
        lines.append(
            f"WAIT #0: nam='SQL*Net message from client' ela= 1000 driver id=1 #bytes=1 p3=0 obj#=-1 tim={tim}"
        )
    return "\n".join([*lines, ""])


def write_set(folder: Path, files: int, **more) -> Path:
    """Write a folder with that many traces, each of a different session."""
    folder.mkdir(parents=True)
    seed = more.pop("seed", 1)
    for number in range(files):
        text = trace(session=f"{number + 10}.1", seed=seed * 100 + number, **more)
        (folder / f"made_ora_{number}.trc").write_text(text)
    return folder


def example() -> str:
    """The text of examples/orders.trc: orders with a query that lacks a bind variable, an insert
    that asks SYS for the next number of a sequence, commits of which two stall, a client that
    thinks once."""
    import random

    dice = random.Random(10046)
    made = _Lines(
        [
            "Trace file /u01/app/oracle/diag/rdbms/shop/shop/trace/shop_ora_4711.trc",
            "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production",
            "Version 19.12.0.0.0",
            "Instance name: shop",
            "Unix process pid: 4711, image: oracle@made-up",
            "",
            f"*** {START}",
            f"*** SESSION ID:(77.1234) {START}",
            f"*** SERVICE NAME:(shop) {START}",
            f"*** MODULE NAME:(order entry) {START}",
            "",
        ]
    )
    for order in range(30):
        number, customer = 200 + order, dice.randrange(1000, 9999)
        made.cursor(number, f"select name from customers where id = {customer}", f"c{order:012d}")
        made.call("PARSE", number, dice.randint(250, 400), cpu=240, miss=1)
        made.call("EXEC", number, 30, cpu=25)
        made.wait(
            number,
            "db file sequential read",
            round(400 * dice.lognormvariate(0, 0.6)),
            "file#=7 block#=3312 blocks=1 obj#=70100",
        )
        made.call("FETCH", number, made.inside + 40, cpu=35, rows=1, cr=3, p=1)
        made.cursor(100, "insert into orders values (order_seq.nextval, :1, :2)", "8hx1y4b9s2d3n")
        began = made.tim
        if order % 10 == 0:
            made.cursor(101, "update seq$ set highwater=:2 where obj#=:1", "4m7m0t6fjcs5x", 1, 0)
            made.call("EXEC", 101, 160, cpu=150, dep=1, cu=3, rows=1)
        made.inside = made.tim - began
        made.call("EXEC", 100, made.inside + 180, cpu=170 + made.inside // 2, cu=7, rows=1)
        stall = 85_000 if order in (11, 12) else 900
        made.wait(
            0, "log file sync", round(stall * dice.lognormvariate(0, 0.25)), "buffer#=911 sync scn=88 p3=0 obj#=-1"
        )
        made.add("XCTEND rlbk=0, rd_only=0, tim={tim}")
        made.wait(0, "SQL*Net message to client", 2, "driver id=1 #bytes=1 p3=0 obj#=-1")
        think = 1_400_000 if order == 20 else round(1_500 * dice.lognormvariate(0, 0.4))
        made.wait(0, "SQL*Net message from client", think, "driver id=1 #bytes=1 p3=0 obj#=-1")
    made.add(
        "STAT #200 id=1 cnt=1 pid=0 pos=1 obj=70100 op='TABLE ACCESS BY INDEX ROWID CUSTOMERS"
        " (cr=3 pr=1 pw=0 str=1 time=431 us cost=2 size=24 card=1)'"
    )
    made.add(
        "STAT #200 id=2 cnt=1 pid=1 pos=1 obj=70101 op='INDEX UNIQUE SCAN CUSTOMERS_PK"
        " (cr=2 pr=0 pw=0 str=1 time=12 us cost=1 size=0 card=1)'"
    )
    return "\n".join([*made.lines, ""])


class _Lines:
    """The lines of a trace, its clock, and the waits since the last call."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.tim, self.inside = lines, 5_000_000, 0

    def add(self, line: str) -> None:
        self.lines.append(line.replace("{tim}", str(self.tim)))

    def cursor(self, number: int, text: str, sqlid: str, dep: int = 0, uid: int = 104) -> None:
        self.tim += 60
        self.add("=====================")
        self.add(
            f"PARSING IN CURSOR #{number} len={len(text)} dep={dep} uid={uid} oct=3"
            f" lid={uid} tim={{tim}} hv={number} ad='7c0' sqlid='{sqlid}'"
        )
        self.lines += [text, "END OF STMT"]
        self.inside = 0

    def call(
        self,
        kind: str,
        number: int,
        e: int,
        *,
        cpu: int,
        miss: int = 0,
        rows: int = 0,
        cr: int = 0,
        cu: int = 0,
        p: int = 0,
        dep: int = 0,
    ) -> None:
        self.tim += max(e - self.inside, 1)
        self.add(
            f"{kind} #{number}:c={cpu},e={e},p={p},cr={cr},cu={cu},mis={miss},r={rows},dep={dep},og=1,plh=0,tim={{tim}}"
        )
        self.inside = 0

    def wait(self, number: int, event: str, ela: int, parameters: str) -> None:
        self.tim += ela + 3
        self.inside += ela + 3
        self.add(f"WAIT #{number}: nam='{event}' ela= {ela} {parameters} tim={{tim}}")
