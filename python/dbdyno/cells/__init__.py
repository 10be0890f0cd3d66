"""Storage cells over SSH: metrics, recordings and commands on all cells at once.

`listing` parses CellCLI's output, `catalogue` describes the metrics and how each may be aggregated.
"""
