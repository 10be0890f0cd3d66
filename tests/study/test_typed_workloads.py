"""One workload for two targets: a model uses it directly, and PostgreSQL runs a script generated from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.base.errors import PlanError
from dbdyno.bench.engine.prepare import check_scripts
from dbdyno.bench.kinds import kind_of
from dbdyno.study.library import STUDIES
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Arm, Plan, Script, Workload, plan_from_dict
from dbdyno.study.plan.targets import plan_on_target
from dbdyno.study.plan.typed_workloads import compile_workload, refusal, size_bytes, sizes

PLAN = """\
title = "t"
target = "model:sas-and-flash"
[workload]
kind = "commit-loop"
parameters = {redo_bytes = "4KiB..1MiB", think_ms = 2}
[[arm]]
name = "a"
[[arm]]
name = "b"
parameters = {redo_bytes = "512"}
against = "a"
"""


def parse(text: str) -> Plan:
    return parse_plan(text, Path("folder/p.toml"))


def test_a_plan_names_its_model_and_its_workload():
    plan = parse(PLAN)
    assert kind_of(plan.dsn).name == "model"
    assert plan.workload.kind == "commit-loop"
    assert plan.parameters_of(plan.arms[1]) == {"redo_bytes": "512", "think_ms": 2}


def test_it_survives_its_manifest():
    plan = parse(PLAN)
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_a_manifest_of_an_older_version_is_still_read():
    old = parse('title = "t"\n[workload]\nscripts = [{text = "select 1;"}]\n[[arm]]\nname = "a"\n')
    value = old.to_dict()
    for name in ("kind", "parameters"):
        del value["workload"][name]
    for name in ("transactions", "warmup_transactions"):
        del value["schedule"][name]
    for name in ("operation", "longest"):
        del value["judge"][name]
    for name in ("parameters", "against"):
        del value["arms"][0][name]
    assert plan_from_dict(value) == old


def test_a_machines_file_is_relative_to_the_plan():
    text = PLAN.replace("model:sas-and-flash", "model:mine.toml")
    assert parse(text).dsn == "model:folder/mine.toml"


@pytest.mark.parametrize("name", ["postgres", "embedded"])
def test_the_embedded_engine_has_a_name_as_a_target(name: str):
    assert parse(PLAN.replace("model:sas-and-flash", name)).dsn is None
    assert plan_on_target(parse(PLAN), name).dsn is None
    assert plan_on_target(parse(PLAN), None).dsn == "model:sas-and-flash"


def test_postgres_gets_scripts_that_compile_one_for_each_arm_that_differs():
    plan = compile_workload(parse(PLAN))
    check_scripts(plan)
    base, other = (plan.scripts_of(arm)[0].text for arm in plan.arms)
    assert "random(4096, 1048576)" in base
    assert "\\set bytes 512" in other
    assert base.rstrip().endswith("\\sleep 2 ms")


def test_redo_size_makes_the_script_that_it_always_made():
    plan = compile_workload(STUDIES["redo-size"].plan({}))
    (script,) = plan.workload.scripts
    assert script.text.startswith("\\set bytes random(4096, 12582912)\nbegin;\n")
    assert "\\redo\ncommit;" in script.text


def test_redo_size_is_one_study_on_both_targets():
    live = STUDIES["redo-size"].plan({}, target="postgres")
    model = STUDIES["redo-size"].plan({}, target="model:sas-and-flash")
    assert plan_on_target(model, "postgres") == live
    assert compile_workload(live) != live


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('kind = "scan-jobs"', "not written in SQL"),
        ('kind = "commit-loop"\nparameters = {cpu_us = 5}', "cpu_us"),
        ('kind = "commit-loop"\nparameters = {redo_bytes = "9KiB..1KiB"}', "empty range"),
        ('kind = "commit-loop"\nparameters = {redo_bytes = "x"}', "is not a size"),
    ],
)
def test_what_postgres_cannot_run_is_refused(table: str, says: str):
    with pytest.raises(PlanError, match=says):
        compile_workload(parse(f'title = "t"\n[workload]\n{table}\n[[arm]]\nname = "a"\n'))


def test_what_a_model_cannot_run_is_refused():
    typed = Workload(kind="commit-loop")
    script = Script("s", "select 1;")
    assert refusal(Plan("t", [Arm("a")], typed)) is None
    assert "SQL" in str(refusal(Plan("t", [Arm("a")], Workload([script]))))
    assert "rate" in str(refusal(Plan("t", [Arm("a", rate_per_s=5.0)], typed)))
    assert "its own" in str(refusal(Plan("t", [Arm("a", before_sql=["select 1"])], typed)))


BAD = [
    ("two workloads", 'kind = "sort"\nbuiltin = "select-only"', "", "not both"),
    ("parameters alone", 'builtin = "select-only"\nparameters = {a = 1}', "", "name the workload's kind"),
    ("unknown kind", 'kind = "sorts"', "", "one of commit-loop"),
    ("against nobody", 'kind = "sort"', 'against = "c"\n', "no arm is named 'c'"),
]


@pytest.mark.parametrize(("work", "arm", "says"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_plan_names_its_line(work: str, arm: str, says: str):
    with pytest.raises(PlanError, match=says) as caught:
        parse(f'title = "t"\n[workload]\n{work}\n[[arm]]\nname = "a"\n{arm}')
    assert (caught.value.where or "").startswith("folder/p.toml:")


def test_sizes_have_the_grammar_of_the_study():
    assert size_bytes("64KiB") == 65_536
    assert sizes("4KiB..1MiB") == [4096, 1_048_576]
    assert sizes("512, 1k") == [512, 1024]
    with pytest.raises(PlanError, match="256 MiB"):
        size_bytes("1000MiB")
