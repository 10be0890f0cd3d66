"""Tests of `compare` and its exit code: 1 means that an arm is slower."""

from __future__ import annotations

ARMS = """[[arm]]
name = "base"
[[arm]]
name = "sleeper"
scripts = [{text = '''select pg_sleep(0.03);'''}]
"""


def test_a_slower_arm_is_found_and_exit_is_1(lab):
    done = lab("run", lab.plan(ARMS, blocks=6))
    assert "SLOWER" in done.stdout
    assert "sleeper is" in lab("compare", "last", code=1).stdout


TYPED = """title = "commits"
target = "%s"
[workload]
kind = "commit-loop"
parameters = {redo_bytes = "4096"}
[schedule]
blocks = 3
warmup_blocks = 1
turn = "100ms"
settle = "10ms"
transactions = 50
[watch]
overhead_blocks = 0
[[arm]]
name = "commit"
"""


def test_a_live_run_stands_beside_a_models(lab, dsn):
    for name, target in (("live", dsn), ("modelled", "model:sas-and-flash")):
        (lab.folder / f"{name}.toml").write_text(TYPED % target)
        lab("run", f"{name}.toml", "--seed", "1")
    first, second = sorted(run.name for run in (lab.folder / "runs").iterdir())
    done = lab("compare", first, second)
    said = " ".join(done.stdout.split())
    assert "model:sas-and-flash (" in said
    assert "PostgreSQL 1" in said
    assert "compare shapes and ratios, not microseconds" in said
    assert "against" in said
