"""Storage cells over SSH: metrics, recordings and commands on all cells at once.

`listing` reads what CellCLI printed, `catalogue` knows the metrics and how each may be summed.
"""
