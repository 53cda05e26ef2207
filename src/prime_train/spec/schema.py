"""The JSON schema of a config, with the descriptions of its fields."""

import ast
import inspect
import json
import re
from typing import Any

from prime_train.spec import spec
from prime_train.spec.spec import RunSpec


def schema_text() -> str:
    """Return the JSON schema as text that ends in a newline; the text is deterministic."""
    plain = RunSpec.model_json_schema()
    described = {RunSpec.__name__: plain, **plain["$defs"]}
    for part, texts in field_texts().items():
        properties = described.get(part, {}).get("properties", {})
        for field, text in texts.items():
            of_type = properties[field].get("description")
            properties[field] = _sorted(
                {**properties[field], "description": f"{text} {of_type}" if of_type else text}
            )
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain}
    return json.dumps(_flowing(made), indent=2, ensure_ascii=False) + "\n"


def field_texts() -> dict[str, dict[str, str]]:
    """Return the attribute docstrings of the spec's fields, by class name and field name."""
    classes = [node for node in ast.parse(inspect.getsource(spec)).body if isinstance(node, ast.ClassDef)]
    found: dict[str, dict[str, str]] = {}
    for part in classes:
        for node, below in zip(part.body, part.body[1:], strict=False):
            match node, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(part.name, {})[name] = inspect.cleandoc(text)
    return found


def _flowing(value: Any) -> Any:
    """Return the schema with its descriptions as paragraphs, because editors break the lines themselves."""
    if isinstance(value, dict):
        return {
            key: re.sub(r"(?<!\n)\n(?!\n)", " ", one)
            if key == "description" and isinstance(one, str)
            else _flowing(one)
            for key, one in value.items()
        }
    return [_flowing(one) for one in value] if isinstance(value, list) else value


def _sorted(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in sorted(row)}
