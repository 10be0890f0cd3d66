"""Traces and exact waits: profiles, statements, the recorder and the proxy.

The Rust core reads the files and accounts for the time (`_core.TraceJob`); the modules here query its evidence:
`profile` (where the time went), `statements`, `waits`, `tree`, `timeline`, `check`. Each returns a plain dict, the
model from which `dbdyno.pages` builds a page. Two sets of traces are compared in `dbdyno.study.analysis.traces`.
"""
