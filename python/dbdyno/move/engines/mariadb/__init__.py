"""MariaDB as a source and as a target of a move.

sql.py          names, literals, and checks of the user's SQL
columns.py      the Arrow, wire and PostgreSQL type of each column
source.py       tables, their columns, and the statements that read them
splits.py       ranges of the primary key, cut by the server's row estimates
job.py          a job that reads a MariaDB, from its aligned snapshots to its last chunk
cost.py         what a job cost the server, per session
single.py       one table into one file, or to stdout
target.py       the target table, its staging tables, and the SQL for both
load.py         files into a table
load_job.py     files into a table, as a job that can be resumed
dry_run.py      what a load would do
publish.py      the transaction that moves staged rows into the tables
rejects.py      rows that the table refuses
checks.py       comparison of the table with the staged rows before the commit
staged_rows.py  verification and publication of a job's staged rows
transfer.py     from server to server, where at least one of them is a MariaDB
"""
