"""Moving tables, exactly: one snapshot for all workers, a ledger that survives any kill, and a proof at the end.

    source.py    what is read: a snapshot that is held and watched, tables, their columns and sizes
    columns.py   how a column travels: as its own Arrow type, or as text with its type noted
    splits.py    pieces of equal size, by blocks of the table's file
    words.py     the user's own SQL: one expression, one query, nothing that reaches beyond it
    ledger.py    the job's folder: manifest, a record per finished chunk
    run.py       workers (the Rust core), their records, what happens after a failure
    resume.py    a job that was ended goes on: in its own snapshot, as of now, or anew
    hold.py      a process that keeps the snapshot when the job is killed
    proof.py     what was checked, and in words what that proves

The bytes are moved in `crates/dyno-move`.
"""
