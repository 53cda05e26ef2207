"""Keys of a control plane that permit less than its master key."""
