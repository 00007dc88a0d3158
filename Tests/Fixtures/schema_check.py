"""Validates YAML with a JSON Schema by other people's packages (Debian's python3-jsonschema and python3-yaml), and prints the
answers as one JSON object: for each name a list of problems, empty for a valid text, null for a text that is not read.

    python3 schema_check.py SCHEMA texts JSON      an object of names and YAML texts
    python3 schema_check.py SCHEMA files FILE...   YAML files, or pages with blocks of YAML
"""
import json
import re
import sys
import textwrap

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.2's core types, as editors have them: no dates, no numbers in base 60, no `yes` and `on`."""

    yaml_implicit_resolvers = {}


for tag, pattern, first in [
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
]:
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), list(first))
# `int` of PyYAML reads 010 as octal and would refuse 08.
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))

schema = json.load(open(sys.argv[1], encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)


def problems(value):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(value)]


def fragment(definition):
    """A definition for a block of a page, which may leave out keys that are required."""
    parts = {**schema["$defs"], "folders": {**schema["$defs"]["folders"], "required": []}}
    return {**definition, "required": [], "$defs": parts}


def block_problems(block):
    """The problems of a block of YAML in a page: a whole configuration, or keys of a folder or a destination. None for a block
    that is no part of one."""
    if not isinstance(block, dict):
        return None
    if "version" in block:
        return problems(block)
    parts = [schema, schema["$defs"]["folders"]]
    parts += [part for name, part in schema["$defs"].items() if name.startswith("destinations.")]
    for part in parts:
        if set(block) <= set(part.get("properties", {})):
            checked = jsonschema.Draft202012Validator(fragment(part))
            return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in checked.iter_errors(block)]
    return None


answers = {}
if sys.argv[2] == "texts":
    for name, text in json.load(open(sys.argv[3], encoding="utf-8")).items():
        try:
            answers[name] = problems(yaml.load(text, Loader))
        except yaml.YAMLError:
            answers[name] = None
else:
    for name in sys.argv[3:]:
        text = open(name, encoding="utf-8").read()
        if not name.endswith(".md"):
            answers[name] = problems(yaml.load(text, Loader))
            continue
        for match in re.finditer(r"^ *```yaml\n(.*?)^ *```", text, re.M | re.S):
            place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            answers[place] = block_problems(yaml.load(textwrap.dedent(match.group(1)), Loader))
print(json.dumps(answers))
