"""A modelled run as trace files: the waits and calls read from them equal those of the run, to the microsecond."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from click.testing import CliRunner
from model_made import model_run

import dbdyno
from dbdyno import _core
from dbdyno.base.errors import ModelError
from dbdyno.cli.main import cli
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.model.trace_write import identifiers, write_model_trace

WAITS_OF_THE_RUN = """
    select arm, block, object, session, event, p1, p2, p3,
           started_ns // 1000 as began_us,
           (started_ns + elapsed_ns) // 1000 - started_ns // 1000 as us
    from waits order by all"""
WAITS_OF_THE_TRACE = """
    select module as arm, regexp_extract(action, '[0-9]+')::uinteger as block,
           regexp_extract(path, '_(s|lgwr|dbwr)[0-9]*[.]trc$', 1) as object,
           regexp_extract(path, '_s0*([0-9]+)[.]trc$', 1) as session, event, p1, p2, p3,
           started_ns // 1000 as began_us, elapsed_ns // 1000 as us
    from waits join contexts using (file, context) join files using (file)"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Path]:
    """Return a run, the run that `dbdyno trace` imported from its traces, and their folder."""
    seed = secrets.randbelow(10**9)
    print(f"seed {seed}")
    folder = tmp_path_factory.mktemp("traced")
    run = model_run(folder, seed)
    write_model_trace(run, folder / "traces")
    return run, dbdyno.read_trace([str(folder / "traces")], folder / "read"), folder / "traces"


def test_one_file_for_each_arm_and_session_and_one_for_the_log_writer(both):
    names = sorted(file.name for file in both[2].iterdir())
    assert names == [f"{arm}_{who}.trc" for arm in ("32-KB-on", "off") for who in ("lgwr", "s000", "s001", "s002")]


def waits_of_trace(read):
    return dbdyno.sql(
        f"select * replace (if(object = 's', 'session', object) as object,"
        f" coalesce(try_cast(session as bigint), 0) as session) from ({WAITS_OF_THE_TRACE})"
        " order by all",
        read,
    ).fetchall()


def test_every_wait_comes_back_with_its_event_parameters_and_microseconds(both):
    run, read, _ = both
    expected = dbdyno.sql(WAITS_OF_THE_RUN, run).fetchall()
    found = waits_of_trace(read)
    assert len(found) > 500
    assert found == expected


def test_every_call_comes_back_with_its_microseconds_and_its_parent(both):
    run, read, _ = both
    expected = dbdyno.sql(
        "select kind = 'transaction', (started_ns + elapsed_ns) // 1000 - started_ns // 1000 from calls order by all",
        run,
    ).fetchall()
    found = dbdyno.sql("select depth = 0, elapsed_ns // 1000 from calls order by all", read)
    assert found.fetchall() == expected
    orphans = dbdyno.sql("select count(*) from calls where depth = 1 and parent is null", read)
    assert orphans.fetchall() == [(0,)]


def test_sums_close_and_no_rounding_adds_up(both):
    run, read, _ = both
    rows = dbdyno.sql(
        "select sum(unexplained_ns), sum(unaccounted_ns), sum(elapsed_ns) from sessions"
        " join files using (file) where path not like '%lgwr%'",
        read,
    ).fetchall()
    assert rows[0][:2] == (0, 0)
    # The sum over thousands of waits is off by less than one microsecond per session and block.
    lengths = dbdyno.sql(
        "select sum(us) from (select max(started_ns + elapsed_ns) // 1000 - min(started_ns) // 1000"
        " as us from (select arm, block, session, started_ns, elapsed_ns from waits"
        " where object = 'session' union all by name select arm, block, session, started_ns,"
        " elapsed_ns from calls) group by arm, block, session)",
        run,
    ).fetchall()
    assert rows[0][2] // 1000 == lengths[0][0]


def test_statements_have_the_identifiers_that_oracle_gives_them():
    # Found in every trace of a session that commits.
    assert identifiers("COMMIT") == ("8ggw94h7mvxd7", 255718823)


@pytest.fixture(scope="module")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Return a run of the core with flash log off and on, and the run read from its traces."""
    folder = tmp_path_factory.mktemp("modelled")
    run = new_run(folder, "modelled", {"machine": {"target": "model:exadata-x2"}}, name="run")
    arms = [
        {
            "name": name,
            "settings": {"cells.flash_log.enabled": value},
            "sessions": 4,
            "workload": {"kind": "update-loop", "blocks": 20_000},
        }
        for name, value in (("off", "false"), ("on", "true"))
    ]
    spec = {
        "machine": _core.model_machine("exadata-x2"),
        "seed": 11,
        "transactions": 100,
        "warmup_transactions": 20,
        "arms": arms,
    }
    core = _core.ModelRun(spec)
    for index in range(2):
        told = core.block(index, run.path)
        run.add_block(
            Block(
                index,
                "measure",
                told["started_ns"],
                told["ended_ns"],
                told["rows"],
                [SliceRecord(0, 0), SliceRecord(1, 1)],
            )
        )
    run.save(status="complete")
    write_model_trace(run, folder / "traces")
    return run, dbdyno.read_trace([str(folder / "traces")], folder / "read")


def test_every_wait_of_a_modelled_run_comes_back(modelled: tuple[Run, Run]):
    run, read = modelled
    expected = dbdyno.sql(
        f"select * replace (if(object = 'session', session, 0) as session) from ({WAITS_OF_THE_RUN}) order by all",
        run,
    ).fetchall()
    found = waits_of_trace(read)
    events = {row[4] for row in found}
    assert {"log file sync", "log file parallel write", "cell single block physical read"} <= events
    assert found == expected


def test_the_time_of_modelled_sessions_closes_and_their_cpu_is_positive(modelled: tuple[Run, Run]):
    rows = dbdyno.sql(
        "select sum(unexplained_ns), sum(unaccounted_ns), sum(cpu_ns) > 0, sum(orphans)"
        " from sessions join files using (file) where path like '%\\_s0%' escape '\\'",
        modelled[1],
    ).fetchall()
    assert rows == [(0, 0, True, 0)]


def test_a_run_of_another_target_is_refused(tmp_path: Path):
    run = model_run(tmp_path, 1, blocks=1, transactions=1)
    run.manifest = Manifest.from_values(
        {name: own for name, own in run.manifest.to_json().items() if name != "machine"}
    )
    with pytest.raises(ModelError, match="not a run of a model"):
        write_model_trace(run, tmp_path / "out")


def test_a_run_without_a_whole_block_is_refused(tmp_path: Path):
    run = model_run(tmp_path, 1, blocks=0)
    with pytest.raises(ModelError, match="contains no complete block"):
        write_model_trace(run, tmp_path / "out")


def test_the_command_leaves_a_folder_with_something_in_it_alone(tmp_path: Path):
    model_run(tmp_path, 1, blocks=1, transactions=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    arguments = ["model", "trace", "made", "--runs", str(tmp_path), "--out"]
    refused = CliRunner().invoke(cli, [*arguments, str(tmp_path / "full")])
    assert isinstance(refused.exception, ModelError)
    done = CliRunner().invoke(cli, [*arguments, str(tmp_path / "new")])
    assert done.exit_code == 0
    assert "off_s000.trc: " in done.output
