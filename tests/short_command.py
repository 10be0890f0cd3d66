"""`dbdyno` as a process of its own, with the short canaries of runs in the test process (`tests/short_canaries.py`).

[sys.executable, short_command.__file__, "run", "plan.toml"]
"""

from __future__ import annotations

import sys

SHORT = {"MESSAGES": 5, "LOOP_STEPS": 5_000, "WAKE_UPS": 2, "STEPS": 20_000}
"""Constants of `dbdyno.bench.canary` in tests."""

if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    sys.argv[0] = "dbdyno"

    from dbdyno.bench import canary
    from dbdyno.entry import entry

    vars(canary).update(SHORT)
    entry()
