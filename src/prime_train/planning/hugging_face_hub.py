"""Reads the data that Hugging Face's hub, or a mirror of it, publishes about a model, in two requests.

The first request is answered for gated models too; the second, for `config.json`, only if the token has
access. Both use URLs that do not redirect. The hub gives the same response for a private model and for one
that does not exist.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from prime_train.errors import PermanentError, TemporaryError
from prime_train.estimate.models.dimensions import Model
from prime_train.http import PAUSE_S, READ_S, Http, HttpResponse, failure

ENDPOINT = "HF_ENDPOINT"
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""Names of the token variable, the current one first and then the deprecated one."""
DEFAULT_ENDPOINT = "https://huggingface.co"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ABSENT = (401, 404)
_CLOSED = (401, 403)
_SEEING = frozenset({"image-text-to-text", "video-text-to-text", "any-to-any", "visual-question-answering"})
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_EXPERT_WIDTHS = ("moe_intermediate_size", "intermediate_size")

Config = Mapping[str, object]


@dataclass(frozen=True)
class HubModel:
    """A model as the hub describes it. Fields that the hub does not report are None or empty."""

    id: str
    commit: str
    gated: str
    """How access to the model is granted: no (anybody may load it), auto or manual."""
    readable: bool
    """Whether the model's files can be read with this token."""
    architecture: str
    is_vision_language: bool
    params: int | None
    context: int | None
    tools: bool | None
    shape: Model | None


class Hub:
    """Client of the hub, authenticated with `token`. `model` raises TemporaryError and PermanentError as
    every adapter does.
    """

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        *,
        token: str = "",
        read_s: float = READ_S,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._http, self._read_s = Http(endpoint, key=token, pause_s=pause_s), read_s

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Hub":
        """Build a client from the variables that Hugging Face's own tools read. Raises PermanentError if
        `HF_ENDPOINT` is not an http or https URL.
        """
        endpoint = environment.get(ENDPOINT) or DEFAULT_ENDPOINT
        if not endpoint.startswith(("http://", "https://")):
            raise PermanentError(f"{ENDPOINT} is {endpoint[:100]!r}, which is not an http or https URL")
        token = next((environment[name].strip() for name in TOKENS if environment.get(name, "").strip()), "")
        return cls(endpoint, token=token)

    def model(self, model_id: str) -> HubModel | None:
        """Return the model, or None if it does not exist or is not visible with this token."""
        if not _ID.fullmatch(model_id) or ".." in model_id:
            raise PermanentError(f"{model_id[:100]!r} is not a model id; write it as owner/name")
        answer = self._ask(f"/api/models/{model_id}")
        if answer.status in _ABSENT:
            return None
        info = _object(answer)
        commit = _text(info.get("sha"))
        config = self._config(_text(info.get("id")) or model_id, commit)
        return _read(model_id, info, config)

    def _config(self, model_id: str, commit: str) -> Config | None:
        """Return the parsed `config.json`, or None if the model has none or access to it is refused."""
        if not _ID.fullmatch(model_id) or not _COMMIT.fullmatch(commit):
            return None
        answer = self._ask(f"/{model_id}/raw/{commit}/config.json")
        return None if answer.status == 404 or answer.status in _CLOSED else _object(answer)

    def _ask(self, path: str) -> HttpResponse:
        answer = self._http.ask("GET", path, read_s=self._read_s)
        if answer.is_ok or answer.status in (*_ABSENT, *_CLOSED):
            return answer
        raise failure(answer)


def _object(answer: HttpResponse) -> Config:
    if not answer.is_ok:
        raise failure(answer)
    content = answer.content()
    if not isinstance(content, dict):
        raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it is not a JSON object")
    return content


def _read(model_id: str, info: Config, config: Config | None) -> HubModel:
    brief = _mapping(info.get("config"))
    full = config or brief
    text = _mapping(full.get("text_config")) or full
    architectures = full.get("architectures") or brief.get("architectures")
    architecture = _text(architectures[0]) if isinstance(architectures, list) and architectures else ""
    params = _int(_mapping(info.get("safetensors")).get("total"))
    return HubModel(
        id=_text(info.get("id")) or model_id,
        commit=_text(info.get("sha")),
        gated=_gated(info.get("gated")),
        readable=config is not None,
        architecture=architecture,
        is_vision_language=info.get("pipeline_tag") in _SEEING or "vision_config" in full,
        params=params,
        context=_int(text.get("max_position_embeddings")),
        tools=_takes_tools(brief),
        shape=shape(model_id.rpartition("/")[2], params, text, tied=full.get("tie_word_embeddings") is True),
    )


def shape(name: str, params: int | None, config: Config, *, tied: bool = False) -> Model | None:
    """Return the shape described by a `config.json`, or by its text part; None if a value needed for the
    memory estimate is missing.
    """
    layers, hidden, heads = (
        _int(config.get(key)) for key in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    ffn, vocab = _int(config.get("intermediate_size")), _int(config.get("vocab_size"))
    if None in (params, layers, hidden, heads, vocab) or not (
        params and layers and hidden and heads and vocab
    ):
        return None
    experts = next((count for key in _EXPERTS if (count := _int(config.get(key)))), 1)
    used = _int(config.get("num_experts_per_tok")) or 1
    shared = _int(config.get("n_shared_experts")) or 0
    width = (
        next((size for key in _EXPERT_WIDTHS if (size := _int(config.get(key)))), None)
        if experts > 1
        else ffn
    )
    if width is None:
        return None
    passed = used + shared if experts > 1 else 1
    idle = 3 * hidden * width * max(0, experts - used) * layers if experts > 1 else 0
    return Model(
        name,
        params,
        layers,
        hidden,
        heads,
        _int(config.get("num_key_value_heads")) or heads,
        _int(config.get("head_dim")) or hidden // heads,
        width * passed,
        vocab,
        tied=tied or config.get("tie_word_embeddings") is True,
        active=max(1, params - idle),
        experts=experts + shared if experts > 1 else 1,
        experts_used=passed,
    )


def _gated(value: object) -> str:
    """Map the hub's false, auto or manual to no, auto or manual. Any other true value counts as manual,
    because the model is not open to all.
    """
    if value in ("auto", "manual"):
        return str(value)
    return "manual" if value else "no"


def _takes_tools(brief: Config) -> bool | None:
    """Return whether one of the model's chat templates mentions tools; None if it has no template."""
    template = brief.get("chat_template_jinja") or _mapping(brief.get("tokenizer_config")).get(
        "chat_template"
    )
    match template:
        case str(text):
            return "tools" in text
        case [*named]:
            texts = [_text(_mapping(one).get("template")) for one in named]
            return any("tools" in text for text in texts)
        case _:
            return None


def _mapping(value: object) -> Config:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
