"""Run folders: manifests, Parquet parts, and SQL over them.

A run folder is readable by any Parquet reader; see `Run` for its life and `docs/reference/evidence.md` for
its columns.
"""

from dbdyno.evidence.run import Block, Run, find_run, list_runs, new_run

__all__ = ["Block", "Run", "find_run", "list_runs", "new_run"]
