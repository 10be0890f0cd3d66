"""MariaDB as a source and as a target of the mover.

sqltext.py    names, literals and the user's own SQL in statements of ours
columns.py    how each column travels
source.py     tables, their columns, the statements that read them
splits.py     ranges of the primary key, cut by the server's own estimates
job.py        a job from its aligned snapshots to its last chunk
target.py     staging tables and the transaction that publishes them
inward.py     files into a table
handing.py    from server to server, where one of them is a MariaDB
"""
