"""Measures the rehearsal of a large load: reading a capture of millions of executions, and rendering a page about
thousands of statements.

    python benches/rehearse.py [--executions 2000000] [--statements 5000] [--sessions 200]

The capture is written as the proxy writes it: prepared statements with one parameter, each session with all
statements in turn. `digest` finds the distinct statements with their calls, times and samples; `page` renders the model
of a rehearsal of as many statements. Both are processes of their own; memory is the most that the system says they had.
Aim: both together within 20 s and 500 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse

SECONDS, MEGABYTES = 20.0, 500.0
_MESSAGES = """
copy (
  with executions as (select i, i % {sessions} + 1 as session, (i // {sessions}) % {statements} as statement
    from range({executions}) t(i)),
  messages as (select session, i * 1000 + kind * 100 as tim, kind, statement, i
    from executions, (values (0), (1), (2), (3), (4), (5)) k(kind))
  select session::uinteger as session, tim::bigint as tim, if(kind < 4, 'client', 'server') as side,
    ['P', 'B', 'E', 'S', 'C', 'Z'][kind + 1] as tag, length(body)::bigint as length, body
  from (select *, case kind
    when 0 then chr(0) || 'select v' || statement || ' from t where id = $1' || repeat(chr(0), 3)
    when 1 then repeat(chr(0), 5) || chr(1) || repeat(chr(0), 3) || chr(7) || lpad((i % 10000000)::varchar, 7, '0')
      || repeat(chr(0), 2)
    when 2 then repeat(chr(0), 5) when 3 then '' when 4 then 'SELECT 1' || chr(0) else 'I' end as body from messages)
  order by tim
) to '{file}' (format parquet, compression zstd)
"""
_DIGEST = (
    "from dbdyno import _core; from pathlib import Path;"
    " print(len(_core.captured_statements(Path({run!r}), {{}}, 5, is_mariadb=False)))"
)
_PAGE = """
import json, sys
from pathlib import Path
from dbdyno.report.html import write_html
from dbdyno.report.terminal import render_text
model = json.loads(Path({model!r}).read_text())
write_html(model, Path({page!r}))
print(len(render_text(model, width=100, color=False)))
"""


def measured(code: str) -> tuple[float, float, str]:
    """Seconds, MB and output of a process that runs `code`."""
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-c", code], stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, child.returncode
        out.seek(0)
        return seconds, used.ru_maxrss / 1024, out.read().decode().strip()


def model(statements: int) -> dict[str, object]:
    """The model of a rehearsal with as many statements; one in fifty is slower, with both plans."""
    node = {"depth": 0, "title": "Seq Scan on t", "planned": 10, "rows": 12, "elapsed_ns": 5e6, "changed": True}
    rows = []
    for at in range(statements):
        slower = at % 50 == 0
        row = {"number": at + 1, "text": f"select v{at} from t where id = $1", "calls": 400, "share": 1 / statements}
        row |= {"decision": "slower" if slower else "same", "ratio": 1.5 if slower else 1.0, "low": 0.9, "high": 1.6}
        row |= {"old_ns": 1e6, "new_ns": 1.5e6 if slower else 1e6, "added_ns": 2e8 if slower else 0.0, "blocks": 12}
        row |= {"cause": None, "plans": {"old": [node] * 8, "new": [node] * 8} if slower else None}
        rows.append(row)
    return {
        "schema": 1,
        "kind": "rehearsal",
        "run": {"id": "bench", "title": "bench", "seed": 1},
        "sides": [{"name": "old", "version": 130000}, {"name": "new", "version": 170000}],
        "load": {"statements": statements, "calls": 400 * statements, "notes": []},
        "threshold": 0.1,
        "verdict": {"decision": "slower", "word": "Regression", "tone": "bad", "headline": "slower", "sentences": []},
        "statements": rows,
        "left_out": [],
        "settings": [],
        "figures": {"contributions": [{"name": "1: select", "difference_ns": 2e8}]},
    }


def main() -> None:
    """Measure both and print seconds, memory and the ratios to the aims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=2_000_000)
    parser.add_argument("--statements", type=int, default=5_000)
    parser.add_argument("--sessions", type=int, default=200)
    given = parse(parser, executions=20_000, statements=50, sessions=20)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "wire").mkdir()
        file = Path(folder) / "wire" / "part.parquet"
        sizes = {"executions": given.executions, "statements": given.statements, "sessions": given.sessions}
        # In a process of its own: what it holds would count as memory of those that are begun after it.
        measured(f"import duckdb; duckdb.execute({_MESSAGES.format(file=file, **sizes)!r})")
        seconds, megabytes, count = measured(_DIGEST.format(run=folder))
        assert int(count) == given.statements, count
        written = Path(folder) / "model.json"
        written.write_text(json.dumps(model(given.statements)))
        page_s, page_mb, _ = measured(_PAGE.format(model=str(written), page=str(Path(folder) / "page.html")))
    print(f"digest  {given.executions:,} executions  {seconds:6.2f} s  {megabytes:6.0f} MB")
    print(f"page    {given.statements:,} statements  {page_s:6.2f} s  {page_mb:6.0f} MB")
    whole, most = seconds + page_s, max(megabytes, page_mb)
    figure("reading a capture and rendering the page", whole, "s", against="20 s", ratio=whole / SECONDS, aim="<= 1")
    figure("memory of it", most, "MB", against="500 MB", ratio=most / MEGABYTES, aim="<= 1")
    print(f"of the aims: time {whole / SECONDS:.2f}, memory {most / MEGABYTES:.2f}")


if __name__ == "__main__":
    main()
