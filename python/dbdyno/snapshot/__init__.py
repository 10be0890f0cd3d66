"""Snapshots of a live engine, and what happened between two of them.

    with open_collector("postgresql://me@db1/app", Options()) as collector:
        first = take(collector, Store(Path("snaps")), engine_name="postgres")

engines/   what is read from each engine, the meaning of its counters and epochs, its part of a report
taking/    taking snapshots: once or at regular intervals, of one target or of many
store/     the folder of snapshots: files, manifests, locks, packing, retention, repair
reading/   differences with a verdict per row, intervals, periods, rates, changes
sessions/  active session history, blocking trees
plans/     plans of statements from the server's log, and when they changed
causes/    what happened between two periods, and why
sending/   metrics and alerts for other systems
"""
