"""Saves nothing and prints nothing but dots."""

import time

for step in range(40):
    time.sleep(0.03)
    print(".", end="", flush=True)
