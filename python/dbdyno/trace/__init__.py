"""Traces: from files of extended SQL trace to answers.

The Rust core reads the files and accounts for the time (`_core.TraceJob`); the modules here query its evidence:
`profile` (where the time went), `statements`, `waits`, `tree`, `timeline`, `check`. Each returns a plain dict, the
model from which `dbdyno.pages` builds a page. For two sets of traces there are `blocks`, `lines` and `tails`.
"""
