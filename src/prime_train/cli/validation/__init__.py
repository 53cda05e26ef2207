"""Commands that check configs without a control plane."""
