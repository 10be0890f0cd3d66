"""Analysis of runs on storage cells, whose counters are the evidence."""
