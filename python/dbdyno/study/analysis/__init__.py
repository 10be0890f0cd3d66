"""Analysis of evidence into `analysis.json`: estimates, intervals, gates, verdicts, and the data of figures."""
