"""Commands on this host as a workload: programs are started and timed."""
