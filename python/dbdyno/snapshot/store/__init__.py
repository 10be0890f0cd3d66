"""The store, a folder of snapshots: its files, manifests, locks, upkeep and retention."""
