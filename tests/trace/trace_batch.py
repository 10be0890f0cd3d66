"""A batch and its slow twin as trace text; each cause can be planted separately.

    write_batch(folder / "good.trc", Batch())
    write_batch(folder / "bad.trc", Batch(network_us=12_000))

The batch reads an order's lines (a query with fetches), updates the order, and commits now and
then. With `block` all of it runs below one PL/SQL call, so that the client executes once only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = "2026-11-21T10:00:00.000000+00:00"
QUERY, UPDATE, EXTRA, BLOCK, COMMIT = 101, 102, 103, 104, 105
LOCK = "enq: TX - row lock contention"


@dataclass(frozen=True)
class Batch:
    """Parameters of the batch; the defaults are those of the good twin."""

    orders: int = 60
    rows: int = 100
    fetch_size: int = 100
    network_us: int = 300
    plan: int = 1111
    gets: int = 20
    reads: int = 2
    read_us: int = 300
    sync_us: int = 500
    commit_every: int = 20
    literals: bool = False
    lock_us: int = 0
    extra: bool = False
    again: int = 0
    """Number of additional times that an order's lines are read."""
    block: bool = False
    seed: int = 1
    session: str = "11.1"


def write_batch(path: Path, batch: Batch) -> Path:
    """Write the trace; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_Writer(batch).text())
    return path


@dataclass
class _Sums:
    """Inclusive counters of one open call."""

    start: int
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("c", "p", "cr", "cu"), 0))


class _Writer:
    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.dice = random.Random(batch.seed)
        self.tim = 5_000_000
        self.open: list[_Sums] = []
        self.lines = [
            "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production",
            "Version 19.12.0.0.0",
            "",
            f"*** {START}",
            f"*** SESSION ID:({batch.session}) {START}",
            "",
        ]

    def text(self) -> str:
        if self.batch.block:
            self.parsed(BLOCK, "begin load_orders; end;", 47, 0)
            self.begin()
            self.work(dep=1)
            self.end("EXEC", BLOCK, 0, 200, r=1)
            self.round_trip(BLOCK)
        else:
            self.work(dep=0)
        return "\n".join([*self.lines, ""])

    def work(self, dep: int) -> None:
        batch = self.batch
        if not batch.literals:
            self.parsed(QUERY, "select item, price from order_lines where order_id = :1", 3, dep, batch.plan)
        self.parsed(UPDATE, "update orders set total = :1 where id = :2", 6, dep, 2222)
        for order in range(batch.orders):
            if batch.literals:
                text = f"select item, price from order_lines where order_id = {order}"
                self.parsed(QUERY, text, 3, dep, batch.plan, sqlid=f"q{order:012d}", hard_us=1_500)
            for _ in range(1 + batch.again):
                self.query(dep)
            self.update(dep, is_locked=batch.lock_us > 0 and order == batch.orders // 2)
            if batch.extra:
                self.extra(dep)
            if (order + 1) % batch.commit_every == 0:
                self.commit(dep)
        self.plan_lines()

    def query(self, dep: int) -> None:
        batch = self.batch
        self.call("EXEC", QUERY, dep, 40, plh=batch.plan)
        left = batch.rows
        fetches = -(-batch.rows // batch.fetch_size)
        while left > 0:
            rows = min(left, batch.fetch_size)
            self.begin()
            for _ in range(self.split(batch.reads, fetches)):
                self.wait(QUERY, "db file sequential read", batch.read_us, "file#=4 block#=9 blocks=1 obj#=77")
            gets = self.split(batch.gets, fetches)
            self.end("FETCH", QUERY, dep, 20 + 2 * rows + 8 * gets, cr=gets, r=rows, plh=batch.plan)
            left -= rows
            self.round_trip(QUERY, dep)

    def split(self, whole: int, parts: int) -> int:
        """Return a part of a whole, rounded up or down at random."""
        return int(whole / parts + self.dice.random())

    def update(self, dep: int, is_locked: bool) -> None:
        self.begin()
        if is_locked:
            self.wait(UPDATE, LOCK, self.batch.lock_us, "name|mode=1415053318 usn<<16 | slot=131080 sequence=9 obj#=77")
        self.end("EXEC", UPDATE, dep, 90, cr=3, cu=2, r=1, plh=2222)
        self.round_trip(UPDATE, dep)

    def extra(self, dep: int) -> None:
        self.parsed(EXTRA, "insert into audit_log values (:1, :2, sysdate)", 2, dep, 3333, hard=False)
        self.call("EXEC", EXTRA, dep, 900, cu=30, r=1, plh=3333)
        self.round_trip(EXTRA, dep)

    def commit(self, dep: int) -> None:
        self.parsed(COMMIT, "commit", 44, dep, 0, hard=False)
        self.lines.append(f"XCTEND rlbk=0, rd_only=0, tim={self.tim}")
        self.call("EXEC", COMMIT, dep, 30)
        self.wait(0, "log file sync", self.batch.sync_us, "buffer#=12 sync scn=88 p3=0 obj#=-1")
        self.round_trip(0, dep)

    def plan_lines(self) -> None:
        batch = self.batch
        full = batch.plan != 1111
        steps = ["TABLE ACCESS FULL ORDER_LINES"] if full else ["TABLE ACCESS BY INDEX ROWID ORDER_LINES"]
        steps += [] if full else ["INDEX RANGE SCAN ORDER_LINES_FK"]
        for at, step in enumerate(steps, 1):
            self.lines.append(
                f"STAT #{QUERY} id={at} cnt={batch.rows} pid={at - 1} pos=1 obj=77 op='{step}"
                f" (cr={batch.gets} pr={batch.reads} pw=0 str=1 time={900 // at} us cost=5 size=9 card=1)'"
            )

    def parsed(
        self,
        cursor: int,
        text: str,
        oct_: int,
        dep: int,
        plh: int = 0,
        *,
        sqlid: str = "",
        hard: bool = True,
        hard_us: int = 400,
    ) -> None:
        self.lines += [
            "=====================",
            f"PARSING IN CURSOR #{cursor} len={len(text)} dep={dep} uid=90 oct={oct_} lid=90 tim={self.tim}"
            f" hv={cursor} ad='7c' sqlid='{sqlid or f's{cursor:012d}'}'",
            text,
            "END OF STMT",
        ]
        self.call("PARSE", cursor, dep, hard_us if hard else 15, mis=int(hard), plh=plh)

    def round_trip(self, cursor: int, dep: int = 0) -> None:
        if dep == 0:
            self.wait(cursor, "SQL*Net message from client", self.batch.network_us, "driver id=1 #bytes=1 p3=0 obj#=-1")

    def noisy(self, us: float) -> int:
        return max(round(us * self.dice.lognormvariate(0, 0.15)), 1)

    def wait(self, cursor: int, event: str, us: int, parameters: str) -> None:
        us = self.noisy(us)
        self.tim += us + 2
        self.lines.append(f"WAIT #{cursor}: nam='{event}' ela= {us} {parameters} tim={self.tim}")
        if self.open and event.startswith("db file"):
            self.open[-1].counts["p"] += 1

    def call(self, kind: str, cursor: int, dep: int, cpu: int, **counts: Any) -> None:
        self.begin()
        self.end(kind, cursor, dep, cpu, **counts)

    def begin(self) -> None:
        self.open.append(_Sums(self.tim))

    def end(self, kind: str, cursor: int, dep: int, cpu: int, **counts: Any) -> None:
        """End a call: add its CPU time, and its counters to the inclusive ones of its parent."""
        sums = self.open.pop()
        cpu = self.noisy(cpu)
        self.tim += cpu + 3
        total = sums.counts
        total["c"] += cpu
        for name in ("cr", "cu"):
            total[name] += counts.get(name, 0)
        if self.open:
            for name, value in total.items():
                self.open[-1].counts[name] += value
        figures = {"c": total["c"], "e": self.tim - sums.start, "p": total["p"], "cr": total["cr"], "cu": total["cu"]}
        figures |= {"mis": counts.get("mis", 0), "r": counts.get("r", 0), "dep": dep, "og": 1}
        figures |= {"plh": counts.get("plh", 0), "tim": self.tim}
        self.lines.append(f"{kind} #{cursor}:" + ",".join(f"{name}={value}" for name, value in figures.items()))
