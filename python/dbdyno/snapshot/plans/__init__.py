"""Plans of statements, read from PostgreSQL's log: which plan ran when, how long it took, and when it changed.

    log files ─ source.py ─ formats.py ─ Entry ─ reader.py ─ executions.py ─ flips.py, page.py
                                                    │             └ plan_store.py (beside the snapshots)
                                          explain.py, tree.py, values.py

auto_explain logs plans. Each logged execution becomes a row; a plan is identified by a hash of its shape. Values never
leave the reader: literals in texts and conditions are replaced before anything is stored. Bytes in a log are treated as
data: entries that cannot be read are counted, and the places of the first ones are recorded.
"""
