"""Hand-off bundles: one archive that reproduces and explains a run."""
