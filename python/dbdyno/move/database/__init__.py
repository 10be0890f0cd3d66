"""Move of a whole PostgreSQL database in one snapshot: schema by the newer server's pg_dump, rows by dbdyno's workers.

programs.py       pg_dump of the newer server, found and run
archive.py        what is in the archive that pg_dump wrote
inventory.py      the source: one snapshot, tables, indexes, sequences
target.py         the target: reasons to refuse it, and what it already contains of this job
schema.py         statements of the archive that run before the rows are copied, and how they are undone
rows.py           rows, copied by the core's workers, each chunk exactly once
large_objects.py  large objects with owner, privileges and comment
indexes.py        statements that run after the rows are copied, in parallel, largest first
finish_steps.py   sequences, privileges, optimizer statistics, event triggers
compare.py        comparison of rows by hash, and of schemas object by object
job.py            the order of all steps, and how a job resumes after a kill
"""
