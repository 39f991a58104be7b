"""Validates JSON lines on stdin with the schemas of OCP Test & Validation in a directory."""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

schemas = [json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")]
registry = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)
root = next(schema for schema in schemas if schema["$id"].endswith("/output"))
validator = Draft202012Validator(root, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER)
lines = [json.loads(line) for line in sys.stdin]
assert lines, "no lines"
for line in lines:
    validator.validate(line)
