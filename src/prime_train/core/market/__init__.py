"""What a run is expected to cost to its end on each machine for rent: price, losses of machines, and the time to start again."""
