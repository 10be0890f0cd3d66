"""A whole PostgreSQL database: its schema by the newer server's pg_dump, its rows by dbdyno's workers, in one snapshot.

programs.py       pg_dump of the newer server, found and run
archive.py        what is in the archive that pg_dump wrote
inventory.py      the source: one snapshot, tables, indexes, sequences
target.py         the target: why it is refused, what it already has of this job
schema.py         statements of the archive before the rows, and how they are undone
rows.py           rows by the core's workers, each chunk once
large_objects.py  large objects with owner, privileges and comment
indexes.py        statements after the rows, in parallel, largest first
finish_steps.py   sequences, privileges, optimizer statistics, event triggers
compare.py        rows by hash, schemas object by object
job.py            the order of all steps, and how a job resumes after a kill
"""
