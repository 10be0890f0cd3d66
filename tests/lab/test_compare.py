"""Comparing answers by its exit code as well: 1 means that an arm is slower."""

from __future__ import annotations

import subprocess

ARMS = """[[arm]]
name = "base"
[[arm]]
name = "sleeper"
scripts = [{text = '''select pg_sleep(0.002);'''}]
"""


def test_a_slower_arm_is_found_and_exit_is_1(lab):
    done = lab("run", lab.plan(ARMS, blocks=6))
    assert "SLOWER" in done.stdout
    compared = subprocess.run(
        lab.command("compare", "last"), cwd=lab.folder, capture_output=True, text=True, check=False
    )
    assert compared.returncode == 1
    assert "sleeper is" in compared.stdout
