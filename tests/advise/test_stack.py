"""A storage stack read from its description: figures of each layer, the layer that limits the next, rejected input."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import judge, rules
from dbdyno.advise.stack.keys import CHOICES, KEYS
from dbdyno.advise.stack.parts import Layer
from dbdyno.advise.stack.read import read
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject

ROOT = Path(__file__).resolve().parents[2]
SAN = ROOT / "examples" / "stacks" / "san.toml"


def described(tmp_path: Path, **more: dict[str, Any] | None) -> Facts:
    """Return the facts of the example with other figures; a section that is None is left out."""
    given: JsonObject = tomllib.loads(SAN.read_text())
    for section, rows in more.items():
        given[section] = None if rows is None else {**given.get(section, {}), **rows}
    lines = []
    for section, rows in given.items():
        if isinstance(rows, dict):
            lines += [
                f"[{section}]",
                *(f"{key} = {json.dumps(value)}" for key, value in rows.items() if value is not None),
            ]
    file = tmp_path / "stack.toml"
    file.write_text("\n".join(lines))
    return read(file)


def layer(facts: Facts, name: str) -> Layer:
    return next(one for one in facts.rows_of(Layer) if one.name == name)


def found(facts: Facts) -> dict[str, JsonObject]:
    return {one["rule"]: one for one in judge(facts, rules())["findings"]}


def test_ten_scans_of_one_megabyte_are_320_commands_and_64_go_out() -> None:
    facts = read(SAN)
    lun = layer(facts, "lun")
    assert (lun.offered, lun.count, lun.each, lun.passes, lun.waits) == (320, 32, 2, 64, 256)
    one = found(facts)["starved_layer"]
    assert "64 of 320" in one["sentence"] and "5 rounds" in one["expected"] and one["subject"] == "lun.queue_limit"
    assert one["fix"][0].startswith("set sd:sd_max_throttle=8 ")


def test_littles_law_both_ways() -> None:
    facts = read(SAN)
    assert layer(facts, "lun").per_s == pytest.approx(64 / 0.005)
    assert layer(facts, "disk").limit == pytest.approx(32 * 8), "a disk is kept busy by one command"
    assert layer(facts, "cable").limit == pytest.approx(4 * 400e6 / 32768 * 0.005), "rate × latency"


def test_a_cache_that_answers_makes_disks_need_more_under_way(tmp_path: Path) -> None:
    facts = described(tmp_path, array={"cached_share": 0.75, "hit_ms": 0.5})
    mean_ms = 0.5 + 0.25 * 5
    assert layer(facts, "disk").limit == pytest.approx(256 / (0.25 * 5) * mean_ms)


def test_writes_cost_the_disks_what_the_raid_level_says(tmp_path: Path) -> None:
    facts = described(tmp_path, demand={"write_share": 0.5}, disk={"raid": "5"})
    disk = layer(facts, "disk")
    assert disk.per_s == pytest.approx(256 / 0.005 / (0.5 + 0.5 * 4))


def test_the_fix_leaves_no_starved_layer(tmp_path: Path) -> None:
    assert "starved_layer" not in found(described(tmp_path, lun={"queue_limit": 8}))
    assert "starved_layer" not in found(described(tmp_path, stripe={"stripe_kb": 1024}))


def test_disks_that_are_busy_are_no_finding(tmp_path: Path) -> None:
    facts = described(tmp_path, disk={"per_lun": 1})
    assert "starved_layer" not in found(facts), "64 commands keep 32 disks busy"


@pytest.mark.parametrize(
    ("more", "narrow"),
    [
        ({"host": {"queue_limit": 20}}, "host.queue_limit"),
        ({"hba": {"count": 2, "queue_limit": 8}}, "hba.queue_limit"),
        ({"channel": {"queue_limit": 4}}, "channel.queue_limit"),
        ({"array": {"queue_limit": 40}}, "array.queue_limit"),
    ],
)
def test_the_narrowest_layer_is_named(tmp_path: Path, more: JsonObject, narrow: str) -> None:
    assert found(described(tmp_path, **more))["starved_layer"]["subject"] == narrow


def test_a_largest_request_of_the_host_cuts_finer_than_the_stripe(tmp_path: Path) -> None:
    assert layer(described(tmp_path, host={"max_io_kb": 30}), "lun").offered == 10 * math.ceil(1024 / 30)


def test_without_anything_below_the_queue_it_cannot_be_judged(tmp_path: Path) -> None:
    model = judge(described(tmp_path, channel=None, disk=None), rules())
    told = {one["rule"]: one for one in model["not_judged"]}
    assert "described below them" in told["starved_layer"]["why"] and "[disk]" in told["starved_layer"]["next"]


def test_a_port_that_all_hosts_together_overrun(tmp_path: Path) -> None:
    assert "port_overflow" not in found(described(tmp_path, lun={"queue_limit": 32})), "32 LUNs × 32 = 1,024"
    one = found(described(tmp_path, lun={"queue_limit": 32}, host={"count": 2}))["port_overflow"]
    assert one["evidence"][0]["value"] == 2048 and "queue_limit = 16" in one["fix"][0]


def test_measured_rate_and_latency_say_how_much_waits_above_the_limit(tmp_path: Path) -> None:
    one = found(described(tmp_path, measured={"iops": 10_000, "latency_ms": 32}))["measured_queue"]
    assert {each["what"]: each["value"] for each in one["evidence"]}["under way"] == pytest.approx(320)
    assert "80%" in one["sentence"]
    assert "measured_queue" not in found(described(tmp_path, measured={"iops": 10_000, "latency_ms": 6.4}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[lun]\ncount = 4\nqueue_limt = 2", ["line 3", "[lun]", "did you mean queue_limit?"]),
        ("[luns]\ncount = 4", ["line 1", "did you mean lun?"]),
        ("lun = 3", ["line 1", "[lun]"]),
        ("[demand]\njobs = 1\nio_kb = 8", ["no section [lun]"]),
        ("[demand]\njobs = 1\n[lun]\ncount = 1\nqueue_limit = 1", ["line 1", "lacks io_kb"]),
        ("[demand]\njobs = 2.5\nio_kb = 8\n[lun]\ncount = 1\nqueue_limit = 1", ["line 2", "whole number"]),
        ("[demand]\njobs = true\nio_kb = 8\n[lun]\ncount = 1\nqueue_limit = 1", ["line 2"]),
        ("[demand]\njobs = 1\nio_kb = nan\n[lun]\ncount = 1\nqueue_limit = 1", ["line 3", "0.5 KB"]),
        ("[demand]\njobs = 1\nio_kb = 8\n[lun]\ncount = 0\nqueue_limit = 1", ["line 5", "from 1 to"]),
        (
            "[demand]\njobs=1\nio_kb=8\n[lun]\ncount=8\nqueue_limit=1\n[stripe]\nstripe_kb=8\nluns=9",
            ["there are only 8"],
        ),
        ("[demand]\njobs=1\nio_kb=8\n[lun]\ncount=8\nqueue_limit=1\n[host]\nos='vms'", ["line 8", '"solaris"']),
        ("title = 3", ["title"]),
        ("[", ["not valid TOML"]),
    ],
)
def test_a_description_that_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, says: list[str]) -> None:
    file = tmp_path / "stack.toml"
    file.write_text(text)
    with pytest.raises(AdviceError) as caught:
        read(file)
    assert all(word in str(caught.value) for word in [str(file), *says]), str(caught.value)


def test_at_the_ends_of_every_range_there_is_an_answer(tmp_path: Path) -> None:
    for section, keys in KEYS.items():
        for name, key in keys.items():
            for value in (key.least, key.most):
                whole = int(value) if key.whole else value
                try:
                    facts = described(tmp_path, **{section: {**_needed(section), name: whole}})
                except AdviceError as error:
                    assert "LUNs" in str(error) or "disks" in str(error), error
                else:
                    assert judge(facts, rules())["layers"]


def _needed(section: str) -> JsonObject:
    known = tomllib.loads(SAN.read_text()).get(section, {})
    return {name: max(1, key.least) for name, key in KEYS[section].items() if key.required and name not in known}


def test_the_page_of_docs_has_every_key() -> None:
    page = (ROOT / "docs" / "how-to" / "advise.md").read_text()
    names = [f"{section}.{name}" for section, keys in KEYS.items() for name in keys] + list(CHOICES)
    for name in names:
        section, _, key = name.partition(".")
        row = next(line for line in page.splitlines() if line.startswith(f"| `[{section}]`"))
        assert f"`{key}`" in row, name


def test_on_the_command_line() -> None:
    done = dbdyno("advise", SAN, "--format", "json")
    model = json.loads(done.stdout)
    assert done.returncode == 0 and [one["name"] for one in model["layers"]] == ["lun", "channel", "cable", "disk"]
    assert {one["family"] for one in model["findings"] + model["not_judged"]} == {"stack"}
    shown = dbdyno("advise", SAN)
    assert "Layers" in shown.stdout and "dbdyno run queue-depth --target model:san" in shown.stdout
    assert dbdyno("advise", SAN, "--fail-on", "warning").returncode == 1
    assert dbdyno("advise", "nowhere.toml").returncode == 2
    wrong = dbdyno("advise", SAN, "--only", "jit")
    assert wrong.returncode == 2 and "a stack" in wrong.stderr
