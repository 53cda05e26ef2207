"""A drill: one machine of a provider is rented, used and given back, to see whether the provider still answers as its adapter believes."""
