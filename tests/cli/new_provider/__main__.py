"""The command, and on the provider's machines the agent, with the new provider's row in the registry."""

import sys

import prime_agent.main
import prime_train.cli.main
from prime_train.providers.kinds import PROVIDERS
from tests.cli.new_provider import NAME, ROW

if __name__ == "__main__":
    PROVIDERS[NAME] = ROW
    (prime_agent if "--ticket" in sys.argv else prime_train.cli).main.main()
