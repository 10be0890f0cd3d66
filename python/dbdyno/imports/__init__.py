"""Runs from the output of pgbench, sysbench, HammerDB, BenchBase, hyperfine, k6 and JMeter.

`readers` has a file per program, which turns an output into `contents.Contents`; `write` makes a run folder of it.
"""
