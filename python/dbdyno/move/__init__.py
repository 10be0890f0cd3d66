"""Tables moved exactly: one snapshot, a ledger that survives a kill, a proof at the end.

    engines/   what is read and written: snapshots, tables, columns, staging tables, of each engine
    reading/   the way out: workers (the Rust core), their records, resuming a job
    loading/   the way in: files or rows of another server, and the method by which they reach the table
    ledger/    the job's folder: a manifest, and a record for each finished chunk
    proof/     what was checked, and what the job cost the source
    spark/     jobs on a Spark cluster, files on a Hadoop file system

The bytes are moved in `crates/dyno-move`.
"""
