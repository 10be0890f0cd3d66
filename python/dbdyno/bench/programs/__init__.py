"""Commands of this host as a workload: programs started and timed."""
