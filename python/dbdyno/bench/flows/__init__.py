"""Data-flow engines as a bench: all answer the same question, with the steps of the flow in different orders."""
