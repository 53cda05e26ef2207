"""SSH to machines that were just rented: one key pair, host keys pinned on first use, commands and files with limits."""
