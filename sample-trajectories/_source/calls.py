"""Carries out a step in a box; the part all families share."""

import json
from pathlib import Path


def editor_arguments(step):
    arguments = {"command": {"replace": "str_replace"}.get(step.kind, step.kind), "path": step.args[0]}
    if step.kind == "view" and len(step.args) > 1:
        arguments["view_range"] = [int(step.args[1]), int(step.args[2])]
    if step.kind == "create":
        arguments["file_text"] = step.body
    if step.kind == "replace":
        arguments["old_str"], arguments["new_str"] = step.body, step.new
    if step.kind == "insert":
        arguments["insert_line"], arguments["new_str"] = int(step.args[1]), step.body
    return arguments


def edit(box, step):
    """Return (observation, worked, text before, text after)."""
    path = Path(step.args[0])
    before = path.read_text() if path.is_file() else None
    if step.kind == "view":
        text, good = box.view(step.args[0], *[int(n) for n in step.args[1:]])
    elif step.kind == "create":
        text, good = box.create(step.args[0], step.body)
    elif step.kind == "replace":
        text, good = box.replace(step.args[0], step.body, step.new)
    else:
        text, good = box.insert(step.args[0], int(step.args[1]), step.body)
    return text, good, before, path.read_text() if path.is_file() else None


def collect_patch(box, base, terminal=False):
    box.cwd = str(box.place)
    text, code = box.run(f"git add -A && git diff --no-color --cached {base}", terminal, False)
    assert code == 0, text
    return text


def compact(value):
    return json.dumps(value, ensure_ascii=False)
