"""Run folders: manifests, Parquet parts, and SQL over them.

Any Parquet reader can read a run folder. `Run` describes its life cycle, `docs/reference/evidence.md` its columns.
"""
