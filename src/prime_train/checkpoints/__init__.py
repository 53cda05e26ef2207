"""Transfer of checkpoints: split into chunks, compress where that makes them durable sooner, and reassemble."""
