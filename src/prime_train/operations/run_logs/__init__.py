"""Reading what a run logged: on this machine, on a rented one, or in the bucket."""
