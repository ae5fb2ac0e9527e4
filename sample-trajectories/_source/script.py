"""Reads a scripted run: what the agent thinks and does, step by step.

A file starts with `key: value` lines. Each step starts with `%% kind rest`,
then comes the thought, then after a line `--` what the step needs:

    %% run                  a shell command
    %% view PATH [A B]      (nothing)
    %% create PATH          the text of the file
    %% replace PATH         the old text, a line `==>`, the new text
    %% insert PATH LINE     the text
    %% think                (nothing: the thought is the step)
    %% aci                  a command of SWE-agent 0.x's windowed editor
    %% finish               the closing message
    %% submit               (nothing)

`$W` stands for the directory of the working copy.
`%% again N` repeats the step before it N times, as an agent in a loop does.
A command is written as in the file; nothing of what it prints is in here.
"""

import re
from dataclasses import dataclass, field, replace


@dataclass
class Step:
    kind: str
    args: list
    thought: str
    body: str = ""
    new: str = ""


@dataclass
class Script:
    name: str
    head: dict
    steps: list = field(default_factory=list)


def load(path, place):
    parts = re.split(r"^%% ", path.read_text().replace("$W", place), flags=re.M)
    head = {}
    for line in parts[0].splitlines():
        if line.strip():
            key, value = line.split(":", 1)
            head[key.strip()] = value.strip()
    script = Script(path.stem, head)
    for part in parts[1:]:
        first, _, rest = part.partition("\n")
        kind, *args = first.split()
        if kind == "again":
            script.steps.extend([replace(script.steps[-1]) for _ in range(int(args[0]))])
            continue
        thought, body = _split(rest, "--")
        new = ""
        if kind == "replace":
            body, new = _split(body, "==>")
        script.steps.append(Step(kind, args, thought.strip("\n"), body, new.rstrip("\n")))
    for step in script.steps:
        step.body = step.body.strip("\n")
        if step.kind == "create":
            step.body += "\n"
    return script


def _split(text, mark):
    before, found, after = ("\n" + text).partition(f"\n{mark}\n")
    if not found and before.endswith(f"\n{mark}"):
        before = before[: -len(mark) - 1]
    return before[1:], after


class Clock:
    """Times that do not depend on the machine: a thought takes what it takes
    to write it, a command about a third of a second."""

    def __init__(self, start):
        from datetime import datetime

        self.now = datetime.fromisoformat(start)

    def advance(self, seconds):
        from datetime import timedelta

        self.now += timedelta(seconds=seconds)
        return self.now

    def think(self, step):
        size = len(step.thought) + len(step.body) + len(step.new)
        return self.advance(2.4 + size / 23.7 + (size * 7919 % 1000) / 1000003)

    def act(self, text):
        return self.advance(0.31 + (len(text) * 104729 % 7000) / 10007)

    def iso(self):
        return self.now.isoformat(timespec="microseconds")

    def unix(self):
        from datetime import timezone

        return self.now.replace(tzinfo=timezone.utc).timestamp()
