"""All of it, made of the environment: the home, its keys, who serves it, what watcher and webhook need."""
