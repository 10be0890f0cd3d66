"""Tests of arms whose sessions have a longer network delay, on a live engine."""

from __future__ import annotations

import json

TWO_LENGTHS = """\
[[arm]]
name = "here"
[[arm]]
name = "far"
network = {delay = "3ms", rate = "1Gbit"}
"""


def test_the_line_of_an_arm_is_in_its_times_in_the_manifest_and_on_the_page(lab):
    plan = lab.plan(TWO_LENGTHS)
    assert "network: 3ms each way, 1Gbit, for the sessions only" in lab("plan", "check", plan).stdout
    done = lab("run", plan)
    assert "network = 3ms each way, 1Gbit" in " ".join(done.stdout.split())
    run = next((lab.folder / "runs").iterdir())
    manifest = json.loads((run / "manifest.json").read_text())
    assert [arm["changes"] for arm in manifest["arms"]] == [{}, {"network": "3ms each way, 1Gbit"}]
    assert manifest["switch"] == "slices"
    rows = lab("sql", "select arm, min(elapsed_ns) as least from calls group by arm order by arm", "--format", "json")
    far, here = (row["least"] for row in json.loads(rows.stdout))
    assert here < 6_000_000 <= far
    sentences = json.loads((run / "analysis.json").read_text())["method"]["sentences"]
    told = next(sentence for sentence in sentences if "far (3ms each way, 1Gbit)" in sentence)
    assert "the connection that watches the engine did not" in told
    assert "us late on average" in told
