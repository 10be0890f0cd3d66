"""Verdicts outside of runs: two periods of snapshots, two recordings of cells, the findings of one.

Sources only write evidence; what is compared, tested and called better or worse is decided here, and a run's in
`dbdyno.study.analysis`. What comes out is a plain model, which `dbdyno.pages` makes a page of.
"""
