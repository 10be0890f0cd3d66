"""Storage cells as a bench: their IORM plan is switched, their counters are read."""
