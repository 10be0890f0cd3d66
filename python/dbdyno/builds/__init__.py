"""Performance in a build: the commit that made it slower, results over time, workflows for CI services."""
