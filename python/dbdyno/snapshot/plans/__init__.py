"""Plans of statements, read from PostgreSQL's log: which plan ran when, how long it took, and when it changed.

    log files ─ source.py ─ text.py | csvlog.py | jsonlog.py ─ Entry ─ reader.py ─ gathered.py ─ flips.py, page.py
                                                                         │             └ kept.py (beside the snapshots)
                                                               explain.py, tree.py, values.py

auto_explain logs plans. Each execution that the log has becomes a row; what its plan is called is a hash over the
plan's shape. Values never leave the reader: literals in texts and conditions are replaced before anything is kept.
Foreign bytes are data: what cannot be read is counted, with the places of the first.
"""
