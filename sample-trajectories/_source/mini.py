"""mini-swe-agent: `<instance>.traj.json`, v1 (text) and v2 (tool calls)."""

import hashlib

import prompts
from box import Box
from calls import compact

MARK = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def run(issue, script, clock):
    calls = script.head["family"] == "mini-v2"
    limit = int(script.head.get("limit", "40"))
    talk = Calls(script, clock) if calls else Text(script, clock)
    talk.open(prompts.task("/testbed", issue.text))
    status, submission = "LimitsExceeded", ""
    with Box(issue.origin, "/testbed") as box:
        for number, step in enumerate(script.steps[:limit]):
            clock.think(step)
            box.cwd = "/testbed"
            output, code = talk.take(number, step, box)
            if output.startswith(MARK + "\n"):
                status, submission = "Submitted", output.split("\n", 1)[1]
                break
            talk.observe(number, output, code)
        else:
            assert len(script.steps) >= limit, f"{script.name} neither submits nor reaches its limit"
    talk.close(status, submission)
    stats = {"instance_cost": None, "api_calls": talk.count} if calls else {"api_calls": talk.count}
    root = {
        "info": {
            "exit_status": status,
            "submission": submission,
            "model_stats": stats,
            "mini_version": "2.2.7" if calls else "1.15.0",
            "config": talk.config(limit),
        },
        "messages": talk.messages,
        "trajectory_format": "mini-swe-agent-1.1" if calls else "mini-swe-agent-1",
        "instance_id": issue.iid,
    }
    return root, submission


def observation(output, code):
    text = f"<returncode>{code}</returncode>\n"
    if len(output) < 10000:
        return text + f"<output>\n{output}</output>"
    cut = len(output) - 10000
    return (
        text
        + "<warning>\nThe output was too long. Ask for less: use head, tail, sed or a narrower search.\n</warning>\n"
        + f"<output_head>\n{output[:5000]}\n</output_head>\n<elided_chars>\n{cut} characters elided\n</elided_chars>\n"
        + f"<output_tail>\n{output[-5000:]}\n</output_tail>"
    )


class Text:
    system = prompts.SYSTEM_TEXT

    def __init__(self, script, clock):
        self.script, self.clock = script, clock
        self.messages, self.count = [], 0

    def open(self, task):
        self.messages.append({"role": "system", "content": self.system})
        self.messages.append({"role": "user", "content": task})

    def take(self, number, step, box):
        self.count += 1
        content = f"THOUGHT: {step.thought}\n\n```bash\n{step.body}\n```"
        self.messages.append({"role": "assistant", "content": content, "timestamp": self.clock.unix()})
        return box.run(step.body, keep_cwd=False)

    def observe(self, number, output, code):
        self.clock.act(output)
        self.messages.append({"role": "user", "content": observation(output, code), "timestamp": self.clock.unix()})

    def close(self, status, submission):
        text = submission if status == "Submitted" else "The step limit is reached."
        self.clock.act(text)
        self.messages.append({"role": "user", "content": text, "timestamp": self.clock.unix()})

    def config(self, limit):
        return {
            "agent": {"system_template": self.system, "instance_template": "{{task}}", "step_limit": limit, "cost_limit": 0.0},
            "model": {"model_name": self.script.head["model"], "model_kwargs": {}, "cost_tracking": "ignore_errors"},
            "environment": {"cwd": "/testbed", "env": {"PAGER": "cat"}, "timeout": 60},
            "agent_type": "trajscope-samples.HandDriven",
            "model_type": "trajscope-samples.Hand",
            "environment_type": "trajscope-samples.FreshClone",
        }


class Calls(Text):
    system = prompts.SYSTEM_CALLS

    def take(self, number, step, box):
        self.count += 1
        key = hashlib.sha256(f"{self.script.name}/{self.script.head['issue']}/{number}".encode()).hexdigest()[:20]
        self.call = f"call_{number:02}_{key}"
        function = {"arguments": compact({"command": step.body}), "name": "bash"}
        self.messages.append(
            {
                "content": step.thought or None,
                "role": "assistant",
                "tool_calls": [{"index": 0, "function": function, "id": self.call, "type": "function"}],
                "function_call": None,
                "provider_specific_fields": None,
                "extra": {
                    "actions": [{"command": step.body, "tool_call_id": self.call}],
                    "cost": None,
                    "timestamp": self.clock.unix(),
                },
            }
        )
        return box.run(step.body, keep_cwd=False)

    def observe(self, number, output, code):
        self.clock.act(output)
        extra = {"raw_output": output, "returncode": code, "timestamp": self.clock.unix(), "exception_info": ""}
        self.messages.append({"content": observation(output, code), "extra": extra, "tool_call_id": self.call, "role": "tool"})

    def close(self, status, submission):
        self.messages.append(
            {"role": "exit", "content": submission, "extra": {"exit_status": status, "submission": submission}}
        )

    def config(self, limit):
        config = super().config(limit)
        config["environment"]["interpreter"] = ["bash", "-c"]
        return config
