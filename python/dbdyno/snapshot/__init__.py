"""Snapshots of a live engine, and what happened between two of them.

    from dbdyno.snapshot.taking.take import take
    first = take("postgresql://me@db1/app", Store(Path("snaps")))

A collector per engine reads cumulative counters into views (`view`), the store keeps them as
Parquet (`store`), an interval is the difference of two with a verdict on each row (`interval`,
`difference`), and a report is a plain model that `dbdyno.pages` makes a page of.
"""
