"""Outputs of other benchmark programs as runs: pgbench, sysbench, HammerDB, BenchBase, hyperfine, k6, JMeter.

`readers` has a file per program, which turns an output into `contents.Contents`; `write` makes a run folder of it.
"""
