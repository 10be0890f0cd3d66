"""Traces and exact waits: profiles, statements, the recorder and the proxy.

The Rust core reads and accounts (`_core.TraceJob`); here its evidence is asked: `profile` (where
did the time go), `statements`, `waits`, `tree`, `timeline`, `check`. Each gives a plain dict, the
model that `dbdyno.pages` makes a page of. Two sets of traces: `blocks`, `lines` and `tails`.
"""
