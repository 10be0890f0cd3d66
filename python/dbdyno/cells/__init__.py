"""Storage cells: all of them at once, values beside their meaning, rates and latencies right.

`listing` reads what CellCLI printed, `catalogue` knows the metrics and how each may be summed.
"""
