"""The store: a folder of snapshots, its manifests, files, locks, upkeep and retention."""
