"""Exact moves of tables between databases and files: one snapshot, a crash-safe ledger, verification.

    engines/   per engine: snapshots, tables, columns and staging tables
    reading/   reading from the source: workers (the Rust core), their records, resuming a job
    loading/   loading files or another server's rows into a table, and the method used for it
    ledger/    the job's folder: a manifest, and one record per finished chunk
    proof/     what was verified, and what the job cost the source
    spark/     jobs on a Spark cluster, files on a Hadoop file system

The Rust crate `crates/dyno-move` moves the bytes.
"""
