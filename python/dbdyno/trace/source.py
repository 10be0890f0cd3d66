"""Opening of traces for queries: files by way of a temporary import, or a run imported before.

    with open_traces(["traces/"]) as traces:
        traces.connection.execute("select count(*) from waits")

A temporary import is written to the system's temporary folder (`TMPDIR` selects another one) and removed afterwards,
also after Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError, TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.version import VERSION
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.memory import row_dicts
from dbdyno.evidence.run import SCHEMA, Run
from dbdyno.evidence.trace_tables import KIND
from dbdyno.trace.job import Options, Progress, delay_signals, run_job, unwind_on_signals
from dbdyno.trace.names import imported_run, nothing_read_reason, torn_records

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

FORMAT = "oracle 10046"


Row = JsonObject
"""A row of a query: a dict by column name."""


@dataclass(frozen=True)
class Traces:
    """Opened traces.

    `refused` are the files that could not be read, each with `path` and `sentence`. `torn` is the number of records
    inside the files that could not be read; for an import it is 0, because the number was reported when the import was
    made. `arrays` are the columns of the tables that `register` made.
    """

    run: Run
    connection: duckdb.DuckDBPyConnection
    refused: list[dict[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    torn: int = 0
    arrays: dict[str, dict[str, NDArray[Any]]] = field(default_factory=dict)

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the import."""
        return self.run.manifest

    def rows(self, query: str, parameters: Any = None) -> list[Row]:
        """Return the rows of a query as dicts."""
        return row_dicts(self.connection.execute(query, parameters))

    def register(self, name: str, columns: dict[str, NDArray[Any]]) -> None:
        """Make a table of arrays, which are not copied."""
        self.connection.register(name, columns)
        self.arrays[name] = columns

    def unregister(self, name: str) -> None:
        """Drop a table of arrays."""
        self.connection.unregister(name)
        self.arrays.pop(name, None)

    def path_of(self, file: int | None) -> str:
        """Return the path of the file with this number, or ""."""
        return self._paths.get(file, "")

    @functools.cached_property
    def _paths(self) -> dict[int | None, str]:
        return {entry.get("file"): str(entry.get("path", "")) for entry in self.manifest.files}


@contextlib.contextmanager
def open_traces(
    names: Sequence[str], options: Options | None = None, progress: Progress | None = None
) -> Iterator[Traces]:
    """Open trace files, folders and patterns, or one imported run, and yield the opened traces.

    Raises:
        TraceError: nothing could be read.
    """
    from dbdyno.evidence.query import connect

    run = imported_run(names)
    if run is not None:
        connection, broken = connect(run)
        with connection:
            yield Traces(run, connection, [], broken)
        return
    import tempfile

    with unwind_on_signals(), contextlib.ExitStack() as stack:
        with delay_signals():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dbdyno-trace-"))
        run, refused = _import_aside(Path(folder), names, options or Options(), progress)
        connection, broken = connect(run)
        with connection:
            yield Traces(run, connection, refused, broken, torn_records(run.manifest.unread))


def _import_aside(
    folder: Path, names: Sequence[str], options: Options, progress: Progress | None
) -> tuple[Run, list[dict[str, str]]]:
    """Import traces into the temporary folder; an error about disk space names that folder."""
    try:
        return import_into(folder, names, options, progress)
    except EvidenceError as error:
        raise TraceError(
            f"the temporary import could not be written: {error.message.splitlines()[0]}",
            next_step=f"free space in {folder.parent}, or set TMPDIR to a folder on another disk",
        ) from error


def import_into(
    folder: Path, names: Sequence[str], options: Options, progress: Progress | None = None
) -> tuple[Run, list[dict[str, str]]]:
    """Read traces into an empty folder without writing the manifest; return the run and the refused files.

    Raises:
        TraceError: none of the files could be read.
    """
    found = run_job(names, options, lambda job: str(job.import_(folder)), progress)
    refused = list(found.get("refused", []))
    if not found.get("files"):
        raise TraceError(nothing_read_reason(names, refused), next_step="name 10046 trace files")
    return Run(folder, manifest_of(found, options)), refused


def read_trace(files: str | Path | Sequence[str | Path], out: str | Path) -> Run:
    """Read trace files, folders or patterns into the new run folder `out`, and return the run.

    `dbdyno.sql("select * from waits", run)` queries it, and any Parquet reader can read it. Refused files are in
    `run.manifest.refused`.

    Raises:
        TraceError: none of the files could be read.
    """
    names = [files] if isinstance(files, str | Path) else files
    run, _ = import_traces([str(name) for name in names], Path(out))
    return run


def import_traces(
    names: Sequence[str],
    out: Path,
    *,
    options: Options | None = None,
    title: str = "",
    progress: Progress | None = None,
    replace: bool = False,
) -> tuple[Run, list[dict[str, str]]]:
    """Import traces into the new folder `out`; return the run and the refused files.

    The folder is created under another name and renamed when complete: an import that is cut off leaves no run.
    `replace` puts it in the place of an earlier import, which is kept until then.

    Raises:
        TraceError: none of the files could be read, or the folder cannot be created.
    """
    from dbdyno.trace.staging import staged_folder

    options = options or Options()
    with unwind_on_signals(), staged_folder(out, replace=replace) as aside:
        done, refused = import_into(aside, names, options, progress)
        title = title or _title(done.manifest)
        whole = Run(aside, done.manifest.with_values(title=title, refused=refused))
        whole.save(status="complete")
    return Run(out, whole.manifest), refused


def manifest_head(form: str, title: str, started: str) -> JsonObject:
    """Return the first keys of the manifest of complete evidence; `form` is the format of its source."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "format": form,
        "status": "complete",
        "title": title,
        "started_at": started,
        "tool_version": VERSION,
    }


def server_file(path: str, version: str) -> JsonObject:
    """Return the manifest's entry for a server that was recorded directly; it takes the place of a file's entry."""
    return {"file": 0, "path": path, "bytes": 0, "lines": 0, "facts": {"version": f"PostgreSQL {version}"}}


def manifest_of(found: Mapping[str, Any], options: Options) -> JsonObject:
    """Return the manifest of an import, made from the core's answer."""
    return {
        **manifest_head(FORMAT, "", _utc_now()),
        "files": found.get("files", []),
        "totals": found.get("totals", {}),
        "unread": found.get("unread", {}),
        "warnings": found.get("warnings", []),
        "options": {
            "think_time_ns": options.think_time_ns,
            "binds": options.binds,
            "tim_unit_ns": options.tim_unit_ns,
        },
    }


def _title(manifest: Manifest) -> str:
    files = manifest.files
    first = Path(str(files[0].get("path", ""))).name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _utc_now() -> str:
    return datetime.now(UTC).isoformat()
