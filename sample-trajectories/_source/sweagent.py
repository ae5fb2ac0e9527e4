"""SWE-agent: `.traj` of 1.x (function calls) and of 0.x (windowed editor)."""

import hashlib
import json
import shlex

import prompts
from box import Box
from calls import collect_patch, compact, edit, editor_arguments
from window import Window


def run(issue, script, clock):
    old = script.head["family"] == "sweagent-v0"
    terminal = script.head.get("terminal") == "yes"
    with Box(issue.origin, "/testbed", terminal) as box:
        talk = (Old if old else New)(issue, script, clock, box)
        talk.open(prompts.task("/testbed", issue.text))
        for number, step in enumerate(script.steps):
            clock.think(step)
            talk.take(number, step)
        assert talk.patch is not None, f"{script.name} does not submit"
    return talk.root(), talk.patch


class New:
    system = prompts.SYSTEM

    def __init__(self, issue, script, clock, box):
        self.issue, self.script, self.clock, self.box = issue, script, clock, box
        self.trajectory, self.history, self.patch = [], [], None

    def open(self, task):
        self.history.append({"role": "system", "content": self.system, "agent": "main", "message_type": "system_prompt"})
        self.history.append({"role": "user", "content": [{"type": "text", "text": task}], "agent": "main", "message_type": "observation"})

    def take(self, number, step):
        name, arguments, action = self.call(step)
        self.box.seconds = 0.0
        output = self.act(step)
        self.clock.act(output)
        self.trajectory.append(
            {
                "action": action,
                "observation": output,
                "response": step.thought,
                "thought": step.thought,
                "execution_time": round(self.box.seconds, 3),
                "state": {"working_dir": self.box.cwd},
                "query": [{}],
                "extra_info": {},
            }
        )
        key = hashlib.sha256(f"{self.script.name}/{self.issue.iid}/{number}".encode()).hexdigest()[:24]
        call = {"index": 0, "function": {"arguments": compact(arguments), "name": name}, "id": f"call_{key}", "type": "function"}
        self.history.append(
            {
                "role": "assistant",
                "content": step.thought,
                "thought": step.thought,
                "action": action,
                "agent": "main",
                "tool_calls": [call],
                "message_type": "action",
                "thinking_blocks": [],
            }
        )
        text = f"OBSERVATION:\n{output}" if output.strip() else "The command worked and printed nothing."
        self.history.append(
            {
                "role": "tool",
                "content": [{"type": "text", "text": text}],
                "agent": "main",
                "message_type": "observation",
                "tool_call_ids": [call["id"]],
            }
        )

    def call(self, step):
        if step.kind == "run":
            return "bash", {"command": step.body}, step.body
        if step.kind == "submit":
            return "submit", {}, "submit"
        arguments = editor_arguments(step)
        words = ["str_replace_editor", arguments["command"], arguments["path"]]
        for key, value in arguments.items():
            if key not in ("command", "path"):
                words += [f"--{key}", *(shlex.quote(str(v)) for v in (value if isinstance(value, list) else [value]))]
        return "str_replace_editor", arguments, " ".join(words)

    def act(self, step):
        if step.kind == "run":
            return self.box.run(step.body)[0]
        if step.kind == "submit":
            self.patch = collect_patch(self.box, self.issue.base, self.box.terminal)
            return self.patch
        return edit(self.box, step)[0]

    def root(self):
        config = {
            "agent": {"name": "main", "model": {"name": self.script.head["model"]}, "tools": {"parse_function": {"type": "function_calling"}}},
            "env": {"repo": {"path": "/testbed", "base_commit": self.issue.base, "type": "preexisting"}, "name": "main"},
            "problem_statement": {"id": self.issue.iid, "type": "text", "text": self.issue.text},
        }
        return {
            "trajectory": self.trajectory,
            "history": self.history,
            "info": {
                "swe_agent_hash": "none (hand-driven)",
                "swe_agent_version": "1.1.0",
                "exit_status": "submitted",
                "submission": self.patch,
                "model_stats": {"api_calls": len(self.trajectory)},
            },
            "replay_config": json.dumps(config, ensure_ascii=False),
            "environment": "main",
        }


class Old(New):
    system = prompts.SYSTEM_WINDOW

    def __init__(self, issue, script, clock, box):
        super().__init__(issue, script, clock, box)
        self.window = Window(box)

    def open(self, task):
        self.history.append({"role": "system", "content": self.system, "agent": "primary"})
        content = f"{task}\n{self.window.prompt()}"
        self.history.append({"role": "user", "content": content, "agent": "primary"})

    def take(self, number, step):
        action = "submit" if step.kind == "submit" else step.body
        if step.kind == "submit":
            diff = collect_patch(self.box, self.issue.base, self.box.terminal)
            end = "\r\n" if self.box.terminal else "\n"
            output = self.patch = end + diff
        else:
            output = self.window.do(step.body)
        self.clock.act(output)
        state = {"open_file": self.window.path or "n/a", "working_dir": self.box.cwd}
        response = f"{step.thought}\n```\n{action}\n```"
        self.trajectory.append(
            {
                "action": action + "\n",
                "observation": output,
                "response": response,
                "state": json.dumps(state) + "\n",
                "thought": step.thought + "\n",
            }
        )
        self.history.append({"role": "assistant", "content": response, "thought": step.thought + "\n", "action": action + "\n", "agent": "primary"})
        if step.kind != "submit":
            self.history.append({"role": "user", "content": f"{output}\n{self.window.prompt()}", "agent": "primary"})

    def root(self):
        return {
            "environment": "swe_main",
            "trajectory": self.trajectory,
            "history": self.history,
            "info": {
                "exit_status": "submitted",
                "submission": self.patch,
                "model_stats": {"api_calls": len(self.trajectory)},
            },
        }
