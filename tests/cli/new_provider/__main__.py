"""The command, with the new provider's row in the registry."""

from prime_train.cli.main import main
from prime_train.core.registry.providers import PROVIDERS
from tests.cli.new_provider import NAME, ROW

PROVIDERS[NAME] = ROW
main()
