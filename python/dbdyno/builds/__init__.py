"""Performance in builds: the commit that made a program slower, results over time, workflows for CI."""
