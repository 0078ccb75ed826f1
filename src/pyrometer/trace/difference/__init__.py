"""Two traces beside each other: may they be compared, what changed, where, and by how much."""
