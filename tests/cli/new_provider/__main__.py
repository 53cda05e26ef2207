"""The command, with the row of the new provider."""

from prime_train.cli.main import main
from prime_train.core.registry.providers import PROVIDERS
from tests.cli.new_provider import NAME, ROW

PROVIDERS[NAME] = ROW
main()
