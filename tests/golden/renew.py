"""Save the current results of the golden runs as expected: python tests/golden/renew.py [CASE ...]

With `--evidence` the stored runs are recreated as well (an engine, a host and a rack of modelled cells are needed):
only for a change of what a run records.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cells")]

import golden_cases as golden  # noqa: E402
from click.testing import CliRunner  # noqa: E402

SLICES = """\
title = "work_mem and a sort"
question = "Does more work_mem make the sort faster?"
[workload]
scripts = [{name = "sort", text = '''select max(place) from (select row_number() over (order by md5(i::text)) as place
from generate_series(1, 400) i) s;''', weight = 3}, {name = "write", text = '''\\set n random(1, 20)
begin;
insert into orders values (:n) on conflict do nothing;
update orders set a = a where i = :n;
commit;'''}]
setup = ["create table orders (i int primary key, a int default 0)"]
teardown = ["drop table orders"]
[load]
sessions = 2
[schedule]
blocks = 5
warmup_blocks = 1
turn = "40ms"
slice = "10ms"
seed = 5
[watch]
activity_hz = 50
overhead_blocks = 0
[[arm]]
name = "64kB"
settings = {work_mem = "64kB"}
[[arm]]
name = "4MB"
description = "all in memory"
settings = {work_mem = "4MB"}
[[arm]]
name = "dead"
scripts = [{text = "select 1 / (random() * 0.99)::int;"}]
"""
RELOAD = """\
title = "a slower log writer"
question = "Does the delay of the log writer matter to commits?"
[workload]
scripts = [{name = "write", text = '''insert into facts values (1);'''}]
setup = ["create table facts (i int)"]
teardown = ["drop table facts"]
[load]
sessions = 2
rate_per_s = 300
[schedule]
blocks = 6
warmup_blocks = 1
turn = "60ms"
settle = "20ms"
seed = 6
[watch]
activity_hz = 50
overhead_blocks = 2
[verdict]
metric = "mean"
[[arm]]
name = "soon"
[[arm]]
name = "late"
settings = {wal_writer_delay = "500ms"}
"""
AGAIN = """\
title = "one and the same"
[workload]
scripts = [{name = "add", text = '''select 1 + 1;'''}]
[schedule]
blocks = 6
warmup_blocks = 1
turn = "10ms"
slice = "2ms"
seed = 7
[watch]
overhead_blocks = 0
[[arm]]
name = "base"
"""
WORDS: dict[str, tuple[str, ...]] = {
    "engine-slices": ("slices.toml",),
    "engine-reload": ("reload.toml",),
    "engine-aa": ("--aa", "again.toml"),
    "engine-curve": ("redo-size", "--quick", "--blocks", "3", "--seed", "8"),
    "engine-correlation": ("hit-ratio", "--quick", "--blocks", "2", "--set", "sessions=1", "--seed", "9"),
    "host-race": (
        *("flash-log", "--target", "host", "--quick", "--blocks", "6", "--seed", "9", "--set", "paths=disk,flash"),
        *("--set", "think_ms=8", "--set", "sessions=2", "--set", "file_mb=1"),
    ),
}
NEUTRAL = {"host_kernel": "Linux 6.1", "host_cpu": "a processor", "host_cpus": 4, "host_memory_bytes": 8 << 30}


def make(case: str, folder: Path) -> Path:
    """Runs a stored case as a user would; the run folder."""
    os.chdir(folder)
    for name, text in (("slices", SLICES), ("reload", RELOAD), ("again", AGAIN)):
        Path(f"{name}.toml").write_text(text)
    for name in ("disk", "flash", "log"):
        Path(name).mkdir(exist_ok=True)
    probe = ["probe", "redo", "log", "--for", "500ms", "--think", "5ms", "--file-size", "1MiB", "--seed", "1"]
    words = ["run", *WORDS[case]] if case in WORDS else probe
    done = CliRunner().invoke(golden._cli(), words)
    assert done.exit_code in (0, 1, 2), done.output
    return max(Path("runs").iterdir()).absolute()


def make_on_cells(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield a run on two modelled cells, and a run that compares their base with itself."""
    from flash_rig import two_cells

    from dbdyno.cells import iorm_switch

    iorm_switch.SETTLE_S = 0.2
    with two_cells(folder) as rig:
        for case, more in (("cells-flash-log", []), ("cells-aa", ["--aa"])):
            reach = rig.words("--blocks", "4", "--yes", "--out", str(folder / case), *more)
            CliRunner().invoke(golden._cli(), reach)
            yield case, max((folder / case).iterdir())


def store(case: str, run: Path) -> None:
    """Pack a run without its derived files and without facts about this machine."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    for facts in manifest["targets"].values():
        facts.update({key: value for key, value in NEUTRAL.items() if key in facts})
    for name in ("process", "verdict"):
        manifest.pop(name, None)
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    path.write_text(text.replace(str(Path.cwd()), "/srv/bench") + "\n")
    for made in ("analysis.json", "report.html"):
        (run / made).unlink(missing_ok=True)
    with tarfile.open(golden.KEPT / f"{case}.tar.xz", "w:xz") as archive:
        archive.add(run, ".", filter=_nameless)


def _nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main(words: list[str]) -> None:
    """Renew all cases, or the named ones."""
    os.cpu_count = lambda: 4  # type: ignore[assignment]
    cases = [word for word in words if not word.startswith("--")] or list(golden.ALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["DBDYNO_STATE"] = str(folder / "state")
        if "--evidence" in words:
            for case in golden.STORED:
                if case in cases:
                    store(case, make(case, folder))
            if any(case in cases for case in golden.CELLS):
                for case, run in make_on_cells(folder):
                    store(case, run)
        for number, case in enumerate(cases):
            place = folder / f"case{number}"
            place.mkdir()
            golden.keep(case, golden.analysis_of(case, place))
            print(case)


if __name__ == "__main__":
    main(sys.argv[1:])
