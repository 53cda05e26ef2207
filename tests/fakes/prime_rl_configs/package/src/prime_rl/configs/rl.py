"""Some settings of a trainer, and validators of every kind: of one setting, of a section, and of the entire
config.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .behaviours import behave


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Run(Part):
    name: str = ""
    dir: str = ""

    @model_validator(mode="after")
    def _behaves(self) -> Self:
        behave(self.name, self.dir)
        return self


class SingleNode(Part):
    type: Literal["single_node"] = "single_node"
    gpus_per_node: int = 8
    num_train_gpus: int = Field(1, ge=1)
    num_infer_gpus: int = 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.num_train_gpus + self.num_infer_gpus > self.gpus_per_node:
            raise ValueError(
                f"{self.num_train_gpus + self.num_infer_gpus} GPUs are more than gpus_per_node "
                f"({self.gpus_per_node})"
            )
        return self


class MultiNode(Part):
    type: Literal["multi_node"]


class Source(Open):
    env: dict[str, Any] = {}
    ratio: float = Field(1.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _imports_it(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("env"):
            raise ModuleNotFoundError(f"environment {data['env']} is not installed")
        return data

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if not self.env:
            raise ValueError("no environment")
        return self


class Train(Open):
    source: list[Source] = []


class Eval(Open):
    source: list[Source]
    interval: int = Field(100, ge=1)


class Orchestrator(Open):
    train: Train = Train()
    eval: Eval | None = None
    batch_size: int = 128
    group_size: int = 1

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.batch_size % self.group_size:
            raise ValueError("batch_size must be divisible by group_size")
        return self


class Trainer(Open):
    class Optim(Open):
        # A rule of this version alone: that it is refused can have been learned from nowhere else.
        weight_decay: float = Field(0.01, le=0.5)
        lr: float = 1e-6

    optim: Optim = Optim()


class RLConfig(Open):
    trainer: Trainer
    orchestrator: Orchestrator
    run: Run = Run()
    max_steps: int | None = None
    deployment: Annotated[SingleNode | MultiNode, Field(discriminator="type")] = SingleNode()

    @model_validator(mode="before")
    @classmethod
    def _is_one_node_by_default(cls, data: dict[str, Any]) -> dict[str, Any]:
        data.get("deployment", {}).setdefault("type", "single_node")
        return data

    @model_validator(mode="after")
    def _ends(self) -> Self:
        lr = self.trainer.optim.lr
        assert self.max_steps is None or self.max_steps * lr < 1, (
            f"max_steps {self.max_steps} is too far for trainer.optim.lr {lr}"
        )
        return self
