"""Storage cells over SSH: metrics, recordings and commands on all cells at once.

`listing` parses CellCLI's output, `catalogue` knows the metrics and how each may be aggregated.
"""
