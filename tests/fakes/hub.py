"""A fake of Hugging Face's hub: its data of models, and their small files.

Its responses have the format that the hub's own client parses (test_hub.py). A gated model is described but
its files are not returned; a missing one is answered 401 to clients without a token, and 404 to others, so
that the former do not learn whether it exists.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http import HttpFake, Refusal, Request, Response, Route, json_response

TOKEN = "hf_" + "t" * 34
COMMIT = "b968826d9c46dd6066d109eabc6255188de91218"
TEMPLATE = (
    "{%- if tools %}{{ tools }}{%- endif %}{% for message in messages %}{{ message.content }}{% endfor %}"
)


@dataclass
class Repo:
    """A repository. `gated`: False, "auto" or "manual"; `config` None: the repository has no config.json."""

    id: str
    config: dict[str, Any] | None
    params: int | None = None
    gated: str | bool = False
    pipeline: str = "text-generation"
    template: str | list[dict[str, str]] | None = TEMPLATE
    commit: str = COMMIT
    more: dict[str, Any] = field(default_factory=dict)
    """Fields that are added to the hub's response, or replace its own."""

    @property
    def files(self) -> dict[str, bytes]:
        made = {"README.md": b"# A model\n"}
        return made | (
            {"config.json": json.dumps(self.config, indent=2).encode()} if self.config is not None else {}
        )

    def info(self) -> dict[str, Any]:
        brief: dict[str, Any] = (
            {key: self.config[key] for key in ("architectures", "model_type") if key in self.config}
            if self.config
            else {}
        )
        if self.template is not None:
            brief["tokenizer_config"] = {"eos_token": "<|im_end|>", "chat_template": self.template}
        known: dict[str, Any] = {
            "_id": "680da1d8b7ab4c5ad2f7d0a1",
            "id": self.id,
            "modelId": self.id,
            "author": self.id.partition("/")[0],
            "sha": self.commit,
            "lastModified": "2025-07-26T03:49:13.000Z",
            "createdAt": "2025-04-27T03:42:21.000Z",
            "private": False,
            "gated": self.gated,
            "disabled": False,
            "downloads": 3_421_000,
            "likes": 600,
            "library_name": "transformers",
            "pipeline_tag": self.pipeline,
            "tags": ["transformers", "safetensors"],
            "config": brief,
            "siblings": [{"rfilename": name} for name in self.files],
        }
        if self.params is not None:
            known["safetensors"] = {"parameters": {"BF16": self.params}, "total": self.params}
        return known | self.more


QWEN3_8B = Repo(
    "Qwen/Qwen3-8B",
    {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "max_position_embeddings": 40_960,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 151_936,
    },
    8_190_735_360,
)


class FakeHub(HttpFake):
    """The fake. `TOKEN` gives access to gated models if `let_in`."""

    def __init__(self, *repos: Repo, let_in: bool = False) -> None:
        super().__init__()
        self.repos = {repo.id.lower(): repo for repo in repos or (QWEN3_8B,)}
        self.let_in = let_in

    def no_route(self, request: Request) -> Response:
        """Answer a request without a route, also for a missing repository."""
        error = "Repository not found" if request.token else "Invalid username or password."
        headers = {"x-error-code": "RepoNotFound", "x-error-message": "Repository not found"}
        return json_response({"error": error}, 404 if request.token else 401, headers)

    def _repo(self, request: Request) -> Repo:
        name = "/".join(request.params[part] for part in ("owner", "name") if part in request.params)
        if name.lower() not in self.repos:
            raise Refusal(self.no_route(request))
        return self.repos[name.lower()]

    def _info(self, request: Request) -> Response:
        repo = self._repo(request)
        return json_response(repo.info(), headers={"x-repo-commit": repo.commit})

    def _file(self, request: Request) -> Response:
        repo = self._repo(request)
        if repo.gated and not (self.let_in and request.token == TOKEN):
            message = f"Access to model {repo.id} is restricted and you are not in the authorized list."
            return _plain(
                403 if request.token else 401,
                message,
                {"x-error-code": "GatedRepo", "x-error-message": message},
            )
        content = repo.files.get(request.params["file"])
        if content is None:
            return _plain(
                404, "Entry not found", {"x-error-code": "EntryNotFound", "x-repo-commit": repo.commit}
            )
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        return Response(
            200, content, "application/octet-stream", {"etag": etag, "x-repo-commit": repo.commit}
        )

    routes = (
        Route("GET", "/api/models/{name}", _info),
        Route("GET", "/api/models/{owner}/{name}", _info),
        Route("GET", "/api/models/{owner}/{name}/revision/{revision}", _info),
        Route("GET|HEAD", "/{owner}/{name}/raw/{revision}/{file:path}", _file),
        Route("GET|HEAD", "/{owner}/{name}/resolve/{revision}/{file:path}", _file),
    )


def _plain(status: int, text: str, headers: dict[str, str]) -> Response:
    return Response(status, text.encode(), "text/plain", headers)
