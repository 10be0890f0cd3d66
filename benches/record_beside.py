"""Compares samples with exact waits of the same seconds of pgbench's TPC-B.

    python benches/record_beside.py [--seconds 60] [--hertz 10] [--clients 4]
    python benches/record_beside.py --peer PATH/pg_wait_tracer [--seconds 5] [--rounds 4]

Both look at the same sessions on one server of our own: `dbdyno trace record` times every wait, a session of ours looks
at pg_stat_activity so many times a second. A look stands for the time since the look before. The table that is printed
is the one of docs/explanation/exact-and-sampled.md.

With `--peer`, a built pg_wait_tracer (for 17 and later, so the wheel's server; it needs BPF and root) and ours in both
modes take turns of pgbench: nobody, watch, peer, sites, and back. The peer mounts nothing itself, so where tracefs is
not mounted it gets a mount namespace of its own with it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from figures import figure, length, parse
from record import pgbench, recorded, turn, workloads_of

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run
from dbdyno.trace.holders import describe_holders, holders
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording
from dbdyno.trace.source import open_traces

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


TRACEFS = Path("/sys/kernel/tracing")
MOUNTS = f'mount -t tracefs tracefs {TRACEFS} && exec "$@"'
ORDER = ("nobody", "watch", "peer", "sites", "sites", "peer", "watch", "nobody")


@contextlib.contextmanager
def peer(engine: EmbeddedPostgres, program: Path) -> Iterator[dict[str, Any]]:
    """pg_wait_tracer traces every wait while the block runs; the dict has its CPU time."""
    told: JsonObject = {}
    with tempfile.TemporaryDirectory() as folder:
        words = ["--mode", "full", "--pid", str(engine.pid), "--format", "text", "--trace-dir", folder]
        command = [str(program), *words, "--trace-group", "root"]
        if not (TRACEFS / "events").exists():
            command = ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", *command]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            said = []
            for text in process.stdout:
                said.append(text)
                if text.startswith("Tracing "):
                    break
            else:
                raise SystemExit("the peer does not trace:\n" + "".join(said))
            threading.Thread(target=process.stdout.read).start()
            begin = time.monotonic()
            yield told
            words = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            told["own_cpu_ns"] = (int(words[11]) + int(words[12])) * 1e9 / os.sysconf("SC_CLK_TCK")
            told["elapsed_ns"] = (time.monotonic() - begin) * 1e9
            process.send_signal(signal.SIGINT)


def beside_peer(program: Path, seconds: int, rounds: int) -> None:
    """Turns of pgbench beside nobody, ours in both modes, and the peer; medians, and the least of the CPU times."""
    binaries = find_binaries({**os.environ, "DBDYNO_ENGINE": "wheel", "DBDYNO_PG_BIN": ""})
    with EmbeddedPostgres(binaries=binaries, settings={"compute_query_id": True}) as engine:
        print(f"PostgreSQL {binaries.version}, {rounds} rounds of {seconds} s turns")
        pgbench(engine, "-i", "-s", "5", "-q")
        for name, options in workloads_of(seconds).items():
            turns: dict[str, list[dict[str, float]]] = {arm: [] for arm in ORDER}
            for arm in ORDER * rounds:
                ours = recorded(engine, None if arm == "nobody" else arm)
                turns[arm].append(turn(engine, peer(engine, program) if arm == "peer" else ours, options))
            print(name)
            base = statistics.median(one["tps"] for one in turns["nobody"])
            for arm, ones in turns.items():
                used = [one["cpu_us"] for one in ones]
                tps = statistics.median(one["tps"] for one in ones)
                own = statistics.median(one["own"] for one in ones)
                print(
                    f"  {arm:7} CPU a transaction {statistics.median(used):6.1f} us (least {min(used):6.1f});"
                    f" transactions/s {tps:8,.0f} ({tps / base:.3f}); the tracer itself {own:.1%} of a core"
                )
                figure(f"{name} beside {arm}", tps, "1/s", against="nobody", ratio=tps / base)


def main() -> None:
    """One stretch, both ways; or beside the peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--hertz", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    chosen = parse(parser, rounds=1, seconds=2)
    if chosen.peer:
        beside_peer(chosen.peer, chosen.seconds or 5, chosen.rounds)
        return
    chosen.seconds = chosen.seconds or 60
    seen: Counter[str] = Counter()
    spent: list[float] = []
    over = threading.Event()
    with EmbeddedPostgres() as engine, tempfile.TemporaryDirectory() as folder:
        pgbench(engine, "-i", "-s", "1" if chosen.smoke else "5", "-q")
        thread = threading.Thread(target=looks, args=[engine, chosen.hertz, over, seen, spent])
        out = Path(folder) / "run"
        with recording(ServerProcess(int(engine.pid or 0)), out, RecordingOptions(cost_limit=0, mode="sites")) as it:
            thread.start()
            text = pgbench(engine, "-n", "-M", "prepared", "-c", str(chosen.clients), *length(chosen.seconds, 200))
            over.set()
            thread.join()
        connection, _ = connect(Run.open(out))
        with connection:
            exact = {row[0]: row[1:] for row in connection.execute(EXACT).fetchall()}
        with open_traces([str(out)]) as traces:
            behind = [f"{one.event}: {words}" for one in holders(traces).values() if (words := describe_holders(one))]
    each_ms = sum(spent) / max(len(spent), 1) * 1e3
    print(next(line for line in text.splitlines() if "actually processed" in line))
    print(f"{sum(seen.values())} samples, each for {each_ms:.0f} ms; lost {it.report['lost']} notes")
    print("| event | waits | exact, ms | median, us | longest, ms | sampled, ms |")
    print("|---|---|---|---|---|---|")
    for event in sorted({*exact, *seen}, key=lambda event: -exact.get(event, (0, 0))[1]):
        count, total, middle, longest = exact.get(event, (0, 0.0, 0.0, 0.0))
        print(f"| {event} | {count:,} | {total:,.1f} | {middle:,.1f} | {longest:,.2f} | {seen[event] * each_ms:,.0f} |")
        if total:
            figure(
                f"sampled {event}", seen[event] * each_ms, "ms", against="exact", ratio=seen[event] * each_ms / total
            )
    print(*behind, sep="\n")


if __name__ == "__main__":
    main()
