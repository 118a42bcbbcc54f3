"""Writes the types of a run's events for the scripts of the page, from the union that ranks write and workers check.

`python .ci/event_types.py --write` after a change of labs/spec/events.py; without it, a difference is an error.
"""

import sys
from pathlib import Path

from labs.spec.events import json_schema

TARGET = Path(__file__).parent / "web" / "events.d.ts"
HEAD = "// Made by .ci/event_types.py from labs/spec/events.py: change that, and run it with --write.\n"
PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def typed(schema: dict) -> str:
    """A schema as a TypeScript type."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "unknown" if name == "JsonValue" else name
    if "const" in schema or "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema or "oneOf" in schema:
        return " | ".join(typed(each) for each in schema.get("anyOf", schema.get("oneOf")))
    if schema["type"] == "array":
        return f"({typed(schema['items'])})[]"
    if schema["type"] == "object":
        return f"Record<string, {typed(schema['additionalProperties'])}>"
    return PLAIN[schema["type"]]


def interface(name: str, schema: dict) -> list[str]:
    """A record: what may be left out has a question mark. Its kind, which tells events apart, is always there."""
    said = " ".join(schema.get("description", "").split())
    required = {*schema["required"], "kind"}
    fields = [
        f"    {field}{'' if field in required else '?'}: {typed(kind)};" for field, kind in schema["properties"].items()
    ]
    return [f"  /** {said} */", f"  interface {name} {{", *fields, "  }"]


def declarations() -> str:
    schema = json_schema()
    lines = ["declare namespace RunEvents {"]
    for name, record in schema["$defs"].items():
        if record.get("type") == "object":
            lines += interface(name, record)
    lines += [f"  type Any = {typed(schema)};", "}", ""]
    return HEAD + "\n".join(lines)


def main() -> int:
    if "--write" in sys.argv[1:]:
        TARGET.write_text(declarations())
    elif not TARGET.exists() or TARGET.read_text() != declarations():
        sys.stderr.write(f"{TARGET} is not what labs/spec/events.py says: run python .ci/event_types.py --write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
