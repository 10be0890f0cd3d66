"""Plans, the runner that executes them, and the analysis of a run."""
