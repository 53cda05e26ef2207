"""Reasons why an adapter of a rental API would not rent a machine, where they are the same for all."""

ARM64_HINDRANCE = "has an ARM64 processor, but agents and trainers are installed for x86-64"
PRICE_HINDRANCE = "has no price"
