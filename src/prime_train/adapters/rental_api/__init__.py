"""Parts that the adapters of all rental APIs share: reading of responses, pauses that a server asks for, pod names, the key's account."""
