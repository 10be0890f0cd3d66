"""Runs on storage cells, whose counters are the evidence."""
