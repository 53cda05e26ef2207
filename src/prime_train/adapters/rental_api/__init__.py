"""What the adapters of all rental APIs share: the base classes of their clients, pods and providers, the reading of responses and of what
users set, pauses that a server asks for, pod names, price limits, SSH addresses, texts of errors, the key's account."""
