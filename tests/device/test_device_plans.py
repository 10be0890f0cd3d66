"""Devices in plans, studies and targets: what is on which device, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_mounts import require_fuse

from command_line import dbdyno, succeeded
from dbdyno.base.errors import DeviceError, PlanError
from dbdyno.bench.engine.mounted_volumes import MountedVolumes
from dbdyno.bench.engine.volumes import check_volumes, describe_devices, target_parts, volumes_of
from dbdyno.bench.kinds import kind_of
from dbdyno.study.library import find_study
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan, plan_from_dict

HEAD = 'title = "t"\n[workload]\nscripts = [{text = "select 1;"}]\n'


def plan(text: str, above: str = "") -> Plan:
    return parse_plan(above + HEAD + text, Path("/plans/p.toml"))


def test_data_and_log_share_a_volume_where_device_and_parameters_are_equal():
    shared = volumes_of({"data": "gp3", "wal": "gp3", "iops": "6000"})
    assert [(one.device, one.contents, one.settings) for one in shared] == [("gp3", "data and log", ("iops=6000",))]
    apart = volumes_of({"data": "gp3", "wal": "gp3", "wal.iops": "16000"})
    assert [(one.contents, one.settings) for one in apart] == [("data", ()), ("log", ("iops=16000",))]
    assert [one.contents for one in volumes_of({"data": "none", "wal": "io2"})] == ["log"]
    assert volumes_of({"data": "none"}) == []


def test_a_parameter_for_all_devices_goes_to_those_that_have_it():
    words = describe_devices({"data": "disk-7200", "wal": "gp3", "iops": "9000", "data.direct_io": "on"})
    assert words == "data on disk-7200 (direct I/O), log on gp3 (iops=9000)"


def test_a_device_that_polls_needs_a_processor_of_its_own(monkeypatch: pytest.MonkeyPatch):
    require_fuse()
    polling = {"data": "gp3", "wal": "io2", "poll": "on"}
    assert describe_devices(polling) == "data on gp3 (polling), log on io2 (polling)"
    for cores, said in ((1, "keep 2 of 1 processor busy"), (2, "keep 2 of 2 processors busy")):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        with pytest.raises(DeviceError, match=said):
            MountedVolumes(volumes_of(polling))
    assert MountedVolumes(volumes_of({"data": "gp3", "wal": "gp3", "poll": "on"}))


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ({"data": "gp4"}, "did you mean gp3?"),
        ({"data": "gp3", "iopss": "1"}, "did you mean iops?"),
        ({"dataa": "gp3"}, "did you mean data?"),
        ({"data": "gp3", "wal.iops": "1"}, "neither a device of this target nor a parameter of one"),
        ({"data": "gp3", "direct_io": "maybe"}, "must be on or off"),
        ({"data": "gp3", "wal": "io2", "wal.poll": "2"}, "poll must be on or off"),
    ],
)
def test_wrong_devices_are_refused_with_the_next_step(devices: dict[str, str], said: str):
    with pytest.raises(DeviceError) as refused:
        check_volumes(devices)
    assert said in str(refused.value)


def test_a_target_names_an_engine_and_the_device_below():
    assert target_parts("postgres+device:gp3") == ("postgres", {"data": "gp3", "wal": "gp3"})
    assert target_parts("postgresql://h/db+device:gp3") == ("postgresql://h/db+device:gp3", {})
    assert (kind_of("mariadb+device:gp3").name, kind_of("postgres+device:gp3").name) == ("mariadb", "postgres")


def test_arms_and_factors_name_devices_and_take_the_rest_from_the_target():
    arms = """
[[arm]]
name = "a"
[[arm]]
name = "b"
device = {wal = {device = "io2", iops = 5000}}
[[arm]]
name = "c"
dsn = "mariadb+device:flash-2011"
"""
    found = plan(arms, 'target = "mariadb+device:gp3"\n')
    words = [describe_devices(found.device_of(arm)) for arm in found.arms]
    assert words == ["data and log on gp3", "data on gp3, log on io2 (iops=5000)", "data and log on flash-2011"]
    assert (found.dsn, found.arms[2].dsn) == ("mariadb", "mariadb")
    assert plan_from_dict(found.to_dict()) == found
    factors = plan('[[factor]]\ndevice = ["gp3", "io2"]\n[[factor]]\ndevice.wal = ["none", "nvme-2024"]\n')
    assert [arm.name for arm in factors.arms] == [
        "gp3, wal none",
        "gp3, wal nvme-2024",
        "io2, wal none",
        "io2, wal nvme-2024",
    ]
    assert factors.arms[3].device == {"data": "io2", "wal": "nvme-2024"}
    assert factors.factors == ["device", "wal"]


def test_an_error_in_a_plan_names_the_line():
    with pytest.raises(PlanError) as refused:
        plan('[[arm]]\nname = "a"\ndevice = {data = "gp3", iops = -3}\n')
    assert "p.toml:6" in str(refused.value)
    with pytest.raises(PlanError, match="there is no device named 'gp9'"):
        plan('[[factor]]\ndevice = ["gp9"]\n')


def test_set_gives_parts_and_parameters_and_several_values_make_arms():
    made = find_study("redo-size").plan({"wal": "gp3,io2", "iops": "4000"}, quick=True, target="postgres+device:gp3")
    assert [describe_devices(made.device_of(arm)) for arm in made.arms] == [
        "data and log on gp3 (iops=4000)",
        "data on gp3 (iops=4000), log on io2 (iops=4000)",
    ]
    with pytest.raises(PlanError, match="names no parameter"):
        find_study("redo-size").plan({"iopss": "1"}, target="postgres+device:gp3")


def test_one_set_may_name_both_devices(tmp_path: Path):
    words = ("run", "redo-size", "--target", "postgres+device:gp3", "--quick", "--dry-run", "--set")
    done = succeeded(*words, "wal=io2,gp3,data=disk-15000,wal.direct_io=on", cwd=tmp_path)
    for log in ("io2", "gp3"):
        assert f"data on disk-15000, log on {log} (direct I/O)" in done.stdout


def test_only_servers_that_dbdyno_starts_can_be_on_a_device(tmp_path: Path):
    (tmp_path / "p.toml").write_text(HEAD + '[[arm]]\nname = "a"\ndevice = "gp3"\n')
    for target in ("postgresql://nobody@127.0.0.1:1/x", "mariadb://nobody@127.0.0.1:1/x"):
        done = dbdyno("run", "p.toml", "--target", target, cwd=tmp_path)
        assert (done.returncode, "only servers that dbdyno starts" in done.stderr) == (2, True), done.stderr
    done = dbdyno("run", "p.toml", "--target", "postgres+device:gp9", cwd=tmp_path)
    assert (done.returncode, "did you mean gp2" in done.stderr or "did you mean gp3" in done.stderr) == (2, True)


@pytest.mark.parametrize("study", ["redo-device", "redo-block-size", "flash-log", "temp-device", "key-lookup"])
def test_a_study_has_a_form_over_devices_with_as_many_arms_as_on_a_model(study: str):
    options = {"key-lookup": {"place": "disk,flash"}}.get(study, {})
    models = {"temp-device": "model:sas-and-flash", "key-lookup": "model:exadata-x2"}
    real = find_study(study).plan(options, quick=True, target="postgres+device:gp3")
    model = find_study(study).plan(options, quick=True, target=models.get(study))
    assert len(real.arms) == len(model.arms) > 1
    assert [arm.against for arm in real.arms].count(None) == [arm.against for arm in model.arms].count(None)
    assert all(volumes_of(real.device_of(arm)) for arm in real.arms)
