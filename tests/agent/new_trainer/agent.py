"""The agent, with the new trainer's row in the registry."""

from prime_agent.main import main
from prime_train.trainers.registry import TRAINERS
from tests.agent.new_trainer import KIND, ROW

if __name__ == "__main__":
    TRAINERS[KIND] = ROW
    main()
