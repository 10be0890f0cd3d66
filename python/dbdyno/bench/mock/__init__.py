"""A bench of seeded random times, for tests and for checking the analysis against a known truth."""
