"""The control plane's application, which `serve` and the Lambda run: requests of agents, operators, GitHub's jobs, providers and people.

A refused request never reaches the store, so it changes nothing. Later outcomes are the store's: `fenced` is 409.
"""
