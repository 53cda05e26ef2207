"""What a run trains and how: one view of it for every trainer, whatever says so."""
