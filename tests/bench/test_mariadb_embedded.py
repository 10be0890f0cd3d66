"""The embedded MariaDB, its result for a planted effect, and the built-in workloads of both engines."""

from __future__ import annotations

import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from mariadb_lab import MariaLab

from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.study.plan.plan import Workload
from dbdyno.study.plan.workloads import NAMES, builtin_workload, workload_for_engine
from mariadb_server import missing

needs_server = pytest.mark.skipif(bool(missing()), reason=str(missing()))

PLANTED = """[[arm]]
name = "each commit"
[[arm]]
name = "each second"
settings = {innodb_flush_log_at_trx_commit = "0"}
"""


@needs_server
@pytest.mark.soak
def test_a_log_that_is_flushed_once_a_second_commits_faster(tmp_path: Path) -> None:
    lab = MariaLab(tmp_path, "mariadb", "dbdyno_lab.t")
    lab.plan(PLANTED, script="\\set id random(1, 100)\nupdate {table} set v = v + 1 where id = :id;\n")
    lab.run("--blocks", "6")
    manifest = lab.manifest()
    [facts] = manifest["targets"].values()
    assert facts["owned"] and str(facts["version"]).startswith("MariaDB 1") and facts["server_is_here"]
    assert not Path(facts["data_folder"]).exists()
    median = dict(lab.sql("select arm, median(elapsed_ns) from {calls} group by arm"))
    assert median["each second"] < median["each commit"]
    analysis = json.loads((lab.last / "analysis.json").read_text())
    assert "redo" in {row["measure"] for row in analysis["figures"]["over_time"]}
    throughput = lab.sql("select arm, count(*) from {calls} group by arm order by count(*) desc")
    assert throughput[0][0] == "each second"


@pytest.mark.parametrize("engine", ["postgres", pytest.param("mariadb", marks=needs_server)])
def test_the_oltp_mix_runs_on_both_engines(engine: str, tmp_path: Path) -> None:
    lab = MariaLab(tmp_path, "")
    arms = '[[arm]]\nname = "mix"\n[[arm]]\nname = "text"\nprotocol = "simple"\n'
    lab.plan(arms, work='[workload]\nbuiltin = "oltp-read-write"\nmax_tries = 9\n')
    lab.run("--target", engine)
    kinds = dict(lab.sql("select kind, count(*) from {calls} where error is null group by 1"))
    assert kinds["exec"] >= 18 * kinds["transaction"] > 0 and lab.manifest()["plan"]["workload"]["scale"] == 1
    found = lab.sql(
        "select statement, min(rows), max(rows) from {calls} where error is null and kind = 'exec' group by 1"
    )
    single = [(low, most) for text, low, most in found if text.startswith("update") or "where id = " in text]
    assert len(single) == 4 and set(single) == {(1, 1)}, found


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_workload_is_said_in_each_engines_words_once(name: str) -> None:
    plain, own = builtin_workload(name, 2), builtin_workload(name, 2, "mariadb")
    work = Workload(
        plain.scripts, builtin=name, scale=2, setup=[*plain.setup, "mine"], teardown=["mine", *plain.teardown]
    )
    once = workload_for_engine(work, "mariadb")
    assert (once.scripts, once.setup, once.teardown) == (own.scripts, [*own.setup, "mine"], ["mine", *own.teardown])
    assert workload_for_engine(once, "mariadb") == once and workload_for_engine(work, "postgres") == work
    assert "::" not in "".join([*once.setup, once.scripts[0].text])


def _hold(out: Connection) -> None:
    """Start a server, and hold it until this process is killed."""
    with EmbeddedMariaDB() as engine:
        out.send((str(engine.folder), str(engine.pid)))
        time.sleep(600)


@needs_server
def test_an_embedded_server_ends_with_the_process_that_started_it() -> None:
    """The process is forked, which saves a start of the interpreter."""
    context = multiprocessing.get_context("fork")
    told, out = context.Pipe(duplex=False)
    runner = context.Process(target=_hold, args=(out,), daemon=True)
    runner.start()
    folder, pid = told.recv()
    assert Path(f"/proc/{pid}").exists() and Path(folder, "data").exists()
    runner.kill()
    runner.join()
    deadline = time.monotonic() + 120  # the server ends by itself, on a busy machine by force
    while Path(folder).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "mariadbd" not in _program_of(pid)


def _program_of(pid: str) -> str:
    """Return the command line of a living process; empty for a zombie or a missing process."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
    return text


@needs_server
def test_a_setting_with_which_the_server_does_not_start_is_said_with_the_log() -> None:
    engine = EmbeddedMariaDB({"innodb_page_size": "7"})
    with pytest.raises(TargetError, match="the embedded server did not start; the last lines of its log"):
        engine.__enter__()
    assert not engine.folder.exists()
