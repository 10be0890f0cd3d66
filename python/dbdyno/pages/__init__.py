"""Pages out of models: a file per kind of page builds what `dbdyno.page` declares.

Nothing here judges and nothing draws: a builder picks, names and orders; `dbdyno.report` renders what it made.
"""
