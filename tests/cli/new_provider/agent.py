"""The agent, with the new provider's row in the registry."""

from prime_agent.main import main
from prime_train.core.registry.providers import PROVIDERS
from tests.cli.new_provider import NAME, ROW

if __name__ == "__main__":
    PROVIDERS[NAME] = ROW
    main()
