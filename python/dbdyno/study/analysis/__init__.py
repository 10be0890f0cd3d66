"""From evidence to `analysis.json`: estimates, intervals, gates, verdicts, the data of figures."""
