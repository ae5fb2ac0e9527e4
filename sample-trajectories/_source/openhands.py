"""OpenHands V0: one row of `output.jsonl` for a run."""

import hashlib

import prompts
from box import Box, unified
from calls import collect_patch, compact, edit, editor_arguments

STUCK_AFTER = 4


def place(issue):
    return f"/workspace/{issue.iid.rsplit('-', 1)[0]}__{issue.version}"


def run(issue, script, clock):
    with Box(issue.origin, place(issue)) as box:
        log = Log(script, clock, box)
        log.open(prompts.task(box.place, issue.text))
        error = log.work()
        patch = collect_patch(box, issue.base)
    return row(issue, script, log, patch, error), patch


class Log:
    def __init__(self, script, clock, box):
        self.script, self.clock, self.box = script, clock, box
        self.events = []

    def add(self, source, message, **rest):
        head = {"id": len(self.events), "timestamp": self.clock.iso(), "source": source, "message": message}
        self.events.append({**head, **rest})
        return head["id"]

    def open(self, instruction):
        self.instruction = instruction
        self.add(
            "agent",
            prompts.SYSTEM,
            action="system",
            args={
                "content": prompts.SYSTEM,
                "tools": prompts.CODEACT,
                "openhands_version": "none (hand-driven)",
                "agent_class": "HandDriven",
            },
        )
        self.clock.advance(0.000731)
        args = {"content": instruction, "file_urls": None, "image_urls": None, "wait_for_response": False}
        self.add("user", instruction, action="message", args=args)
        self.clock.advance(0.000554)
        self.add("environment", "", observation="agent_state_changed", content="", extras={"agent_state": "running", "reason": ""})

    def work(self):
        limit = int(self.script.head.get("limit", "30"))
        seen = []
        for number, step in enumerate(self.script.steps):
            if number == limit:
                return self.fail(f"RuntimeError: Agent reached maximum iteration in headless mode. Current iteration: {limit}, max iteration: {limit}")
            self.clock.think(step)
            seen.append(self.take(number, step))
            tail = seen[-STUCK_AFTER:]
            if len(tail) == STUCK_AFTER and len(set(tail)) == 1:
                return self.fail("AgentStuckInLoopError: Agent got stuck in a loop")
        return None

    def fail(self, error):
        self.clock.advance(0.002)
        self.add("environment", "", observation="agent_state_changed", content="", extras={"agent_state": "error", "reason": error})
        return error

    def take(self, number, step):
        if step.kind == "run":
            return self.shell(number, step)
        if step.kind == "think":
            meta = self.metadata(number, step, "think", {"thought": step.thought})
            cause = self.add("agent", f"I am thinking...: {step.thought}", action="think", tool_call_metadata=meta, args={"thought": step.thought})
            return self.observe(cause, meta, "think", "Your thought has been logged.", {}, "Your thought has been logged.")
        if step.kind == "finish":
            meta = self.metadata(number, step, "finish", {"message": step.body})
            args = {"final_thought": step.body, "outputs": {}, "thought": step.thought}
            self.add("agent", step.thought, action="finish", tool_call_metadata=meta, args=args)
            self.add("environment", "", observation="agent_state_changed", content="", extras={"agent_state": "finished", "reason": ""})
            return "finish"
        return self.editor(number, step)

    def shell(self, number, step):
        meta = self.metadata(number, step, "execute_bash", {"command": step.body})
        args = {
            "command": step.body,
            "is_input": False,
            "thought": step.thought,
            "blocking": False,
            "is_static": False,
            "cwd": None,
            "hidden": False,
            "confirmation_state": "confirmed",
        }
        cause = self.add("agent", f"Running command: {step.body}", action="run", tool_call_metadata=meta, args=args)
        output, code = self.box.run(step.body)
        metadata = {
            "exit_code": code,
            "pid": -1,
            "username": "root",
            "hostname": "testbed",
            "working_dir": self.box.cwd,
            "py_interpreter_path": None,
            "prefix": "",
            "suffix": f"\n[The command completed with exit code {code}.]",
        }
        extras = {"command": step.body, "metadata": metadata, "hidden": False}
        message = f"Command `{step.body}` executed with exit code {code}."
        return self.observe(cause, meta, "run", output.rstrip("\n"), extras, message, success=code == 0)

    def editor(self, number, step):
        arguments = editor_arguments(step)
        path = step.args[0]
        meta = self.metadata(number, step, "str_replace_editor", arguments)
        if step.kind == "view":
            args = {"path": path, "start": 0, "end": -1, "thought": step.thought, "impl_source": "oh_aci", "view_range": arguments.get("view_range")}
            cause = self.add("agent", f"Reading file: {path}", action="read", tool_call_metadata=meta, args=args)
        else:
            args = {key: arguments.get(key) for key in ("path", "command", "file_text", "old_str", "new_str", "insert_line")}
            args |= {"content": "", "start": 1, "end": -1, "thought": step.thought, "impl_source": "oh_aci"}
            cause = self.add("agent", "", action="edit", tool_call_metadata=meta, args=args)
        text, good, before, after = edit(self.box, step)
        if not good:
            return self.observe(cause, meta, "error", text, {"error_id": ""}, text)
        if step.kind == "view":
            return self.observe(cause, meta, "read", text, {"path": path, "impl_source": "oh_aci"}, f"I read the file {path}.")
        extras = {
            "path": path,
            "prev_exist": before is not None,
            "old_content": before,
            "new_content": after,
            "impl_source": "oh_aci",
            "diff": unified(path, before or "", after),
        }
        return self.observe(cause, meta, "edit", text, extras, f"I edited the file {path}.")

    def observe(self, cause, meta, kind, content, extras, message, **rest):
        self.clock.act(content)
        self.add("agent", message, cause=cause, observation=kind, tool_call_metadata=meta, content=content, extras=extras, **rest)
        return (compact(self.events[cause]["args"]), kind, content)

    def metadata(self, number, step, name, arguments):
        key = hashlib.sha256(f"{self.script.name}/{self.script.head['issue']}/{number}".encode()).hexdigest()
        call = {"index": 0, "function": {"arguments": compact(arguments), "name": name}, "id": f"call_{key[:16]}", "type": "function"}
        message = {"content": "" if step.kind == "think" else step.thought, "role": "assistant", "tool_calls": [call], "function_call": None}
        response = {
            "id": f"hand-{key[16:32]}",
            "created": int(self.clock.unix()),
            "model": self.script.head["model"],
            "object": "chat.completion",
            "choices": [{"finish_reason": "tool_calls", "index": 0, "message": message}],
            "usage": None,
        }
        return {"function_name": name, "tool_call_id": call["id"], "model_response": response, "total_calls_in_response": 1}


def metadata(script, start, directory):
    return {
        "agent_class": "HandDriven",
        "llm_config": {"model": script.head["model"], "api_key": None, "base_url": None, "temperature": None},
        "max_iterations": int(script.head.get("limit", "30")),
        "eval_output_dir": directory,
        "start_time": start.replace("T", " ")[:19],
        "git_commit": None,
        "dataset": "trajscope/samples",
        "data_split": "test",
        "details": {"note": "scripted by hand, no language model was called: see README.md"},
        "condenser_config": {"type": "noop"},
    }


def row(issue, script, log, patch, error):
    costs = {"accumulated_cost": None, "costs": [], "response_latencies": [], "token_usages": []}
    return {
        "instance_id": issue.iid,
        "test_result": {"git_patch": patch},
        "instruction": log.instruction,
        "metadata": metadata(script, script.head["start"], script.head["dir"]),
        "history": log.events,
        "metrics": None if script.head.get("metrics") == "none" else costs,
        "error": error,
        "instance": issue.row(),
    }
