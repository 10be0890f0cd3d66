"""Simulates 200 million events: blocks of a whole study, each with dice of its own and all of its evidence written.

The study is that of benches/model.py: flash-log with 20 sessions of 200,000 commits each, with the flash log and
without, on a rack of three cells.

    python benches/model_events.py [--events 200000000]
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from figures import figure, parse

from model import study

EVENTS, COMMITS = 200_000_000, 200_000


def main() -> None:
    """Runs blocks until they have the events, and prints what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS, help="of all blocks together")
    parser.add_argument("--commits", type=int, default=COMMITS, help="of each session and arm of a block")
    given = parse(parser, events=20_000, commits=100)
    run, events, block = study(given.commits), 0, 0
    begin = time.process_time()
    while events < given.events:
        # The evidence of a block is removed before the next.
        with tempfile.TemporaryDirectory() as folder:
            events += sum(arm["events"] for arm in run.block(block, Path(folder))["report"]["arms"])
        block += 1
    cpu_s = time.process_time() - begin
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{events:,} events in {block} blocks: {cpu_s:.1f} CPU-seconds, load {os.getloadavg()[0]:.1f}")
    print(f"{events / cpu_s:,.0f} events for each CPU-second, {peak_mb:.0f} MB at most")
    figure("events", events, "count")
    figure("CPU time", cpu_s, "CPU-seconds")
    figure("events for each CPU-second", events / cpu_s, "1/s")
    figure("peak memory", peak_mb, "MB")


if __name__ == "__main__":
    main()
