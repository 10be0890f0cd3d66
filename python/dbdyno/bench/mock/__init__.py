"""A bench of seeded times: for tests, and to see what the analysis makes of a known truth."""
