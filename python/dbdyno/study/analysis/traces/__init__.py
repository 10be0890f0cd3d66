"""Two sets of traces against each other: what differs, by how much, why, and whether it would again."""
