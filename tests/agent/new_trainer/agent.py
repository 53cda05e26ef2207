"""The agent, with the row of the new trainer."""

from prime_agent.main import main
from prime_train.core.registry.trainers import TRAINERS
from tests.agent.new_trainer import KIND, ROW

if __name__ == "__main__":
    TRAINERS[KIND] = ROW
    main()
