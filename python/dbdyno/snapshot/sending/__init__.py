"""What leaves a store for other systems: metrics and alerts."""
