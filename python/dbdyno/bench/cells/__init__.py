"""Storage cells as a bench: their IORM plan is switched and their counters are read."""
