"""What sampling misses: the same seconds of pgbench's TPC-B, sampled and exact, side by side.

    python benches/record_beside.py [--seconds 60] [--hertz 10] [--clients 4]

Both look at the same sessions on one server of our own: `dbdyno trace record` times every wait, a session of ours looks
at pg_stat_activity so many times a second. A look stands for the time since the look before. The table that is printed
is the one of docs/explanation/exact-and-sampled.md.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
from record import pgbench

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run
from dbdyno.trace.record.place import Place
from dbdyno.trace.record.recording import Wanted, recording

LOOK = """
select coalesce(wait_event_type || ':' || wait_event, 'CPU') from pg_stat_activity
where application_name = 'pgbench' and state <> 'idle'
"""
EXACT = """
select event, count(*), sum(w.elapsed_ns) / 1e6, quantile_cont(w.elapsed_ns, 0.5) / 1e3, max(w.elapsed_ns) / 1e6
from waits w join contexts c using (context) where c.module = 'client backend' and not think group by 1
"""


def looks(
    engine: EmbeddedPostgres, hertz: float, over: threading.Event, seen: Counter[str], spent: list[float]
) -> None:
    """Looks until it is over."""
    with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
        last = time.monotonic()
        while not over.wait(max(0.0, last + 1 / hertz - time.monotonic())):
            now = time.monotonic()
            for (event,) in connection.execute(LOOK).fetchall():
                seen[event] += 1
                spent.append(now - last)
            last = now


def main() -> None:
    """One stretch, both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--hertz", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    chosen = parser.parse_args()
    seen: Counter[str] = Counter()
    spent: list[float] = []
    over = threading.Event()
    with EmbeddedPostgres() as engine, tempfile.TemporaryDirectory() as folder:
        pgbench(engine, "-i", "-s", "5", "-q")
        thread = threading.Thread(target=looks, args=[engine, chosen.hertz, over, seen, spent])
        out = Path(folder) / "run"
        with recording(Place(int(engine.pid or 0)), out, Wanted(cost_limit=0)) as it:
            thread.start()
            text = pgbench(engine, "-n", "-M", "prepared", "-c", str(chosen.clients), "-T", str(chosen.seconds))
            over.set()
            thread.join()
        connection, _ = connect(Run.open(out))
        with connection:
            exact = {row[0]: row[1:] for row in connection.execute(EXACT).fetchall()}
    each_ms = sum(spent) / max(len(spent), 1) * 1e3
    print(next(line for line in text.splitlines() if "actually processed" in line))
    print(f"{sum(seen.values())} samples, each for {each_ms:.0f} ms; lost {it.told['lost']} notes")
    print("| event | waits | exact, ms | median, us | longest, ms | sampled, ms |")
    print("|---|---|---|---|---|---|")
    for event in sorted({*exact, *seen}, key=lambda event: -exact.get(event, (0, 0))[1]):
        count, total, middle, longest = exact.get(event, (0, 0.0, 0.0, 0.0))
        print(f"| {event} | {count:,} | {total:,.1f} | {middle:,.1f} | {longest:,.2f} | {seen[event] * each_ms:,.0f} |")


if __name__ == "__main__":
    main()
