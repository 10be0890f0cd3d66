"""Data that is sent from a store to other systems: metrics and alerts."""
