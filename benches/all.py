"""All benches, one after the other: `make bench`.

    python benches/all.py [--smoke] [--only NAME,NAME]

Each figure is added to benches/results.jsonl, and docs/explanation/performance.md is made from it. A bench that lacks
something (a node of Cassandra, a server with pg_profile) says what, and the others go on. The exit code is 1 where a
bench fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import page
from figures import LACKS, RESULTS, ROOT, parse


def main() -> int:
    """Runs each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="benches by name, with commas between")
    given = parse(parser)
    chosen = [name for name in page.BENCHES if not given.only or name in given.only.split(",")]
    os.environ[RESULTS] = str(ROOT / "benches" / "results.jsonl")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        began = time.perf_counter()
        command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *(["--smoke"] if given.smoke else [])]
        code = subprocess.run(command, check=False).returncode
        print(f"== {name}: {time.perf_counter() - began:.1f} s", flush=True)
        if code not in (0, LACKS):
            failed.append(name)
    if not given.smoke:
        page.write()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
