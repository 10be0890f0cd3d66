"""Snapshots of a live engine, and what happened between two of them.

from dbdyno.snapshot.taking.take import take
first = take("postgresql://me@db1/app", Store(Path("snaps")))

engines/   what each engine is asked, what its counters and epochs mean, what its report says
taking/    one snapshot, one per period, one target or many
store/     the folder of snapshots: files, manifests, locks, packing, retention, repair
reading/   differences with a verdict per row, intervals, periods, rates, what changed
sessions/  active session history, blocking trees
plans/     plans of statements from the server's log, and when they changed
causes/    what happened between two periods, and why
sending/   metrics and alerts for other systems
"""
