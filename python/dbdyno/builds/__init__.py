"""Performance in a build: the commit that made it slower, results kept over time, workflows for CI services."""
