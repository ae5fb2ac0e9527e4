"""Apply a patch to a fresh clone and run the hidden tests, as SWE-bench does."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from box import environment

LINE = re.compile(r"^(\w+) \(([\w.]+)\) \.\.\. (?:.*)?\b(ok|FAIL|ERROR|skipped.*)$")
APPLY = [
    ["git", "apply", "--verbose", "-"],
    ["git", "apply", "--verbose", "--reject", "-"],
    ["patch", "--batch", "--fuzz=5", "-p1", "-i", "-"],
]


def run_hidden(issue_dir, origin, patch):
    """Return (applied, {test id: passed}, log, output) for `patch` (bytes or None)."""
    with tempfile.TemporaryDirectory(prefix="grade-") as tmp:
        env = environment(tmp)
        tree = Path(tmp) / "testbed"
        subprocess.run(["git", "clone", "-q", str(origin), str(tree)], check=True, env=env)
        log = ""
        if patch:
            applied, log = _apply(tree, env, patch)
            if not applied:
                return False, {}, log, ""
        subprocess.run(["git", "checkout", "-q", "HEAD", "--", "tests"], cwd=tree, check=True, env=env)
        modules = set()
        for source in sorted((issue_dir / "repo/tests").glob("test_*.py")):
            modules.add(f"tests.{source.stem}")
        for source in sorted((issue_dir / "hidden/tests").glob("*.py")):
            shutil.copyfile(source, tree / "tests" / source.name)
            modules.add(f"tests.{source.stem}")
        command = ["python", "-m", "unittest", "-v", *sorted(modules)]
        done = subprocess.run(command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        output = done.stdout.decode("utf-8", "backslashreplace").replace(str(tree), "/testbed")
        return True, parse(output), log, f"+ {' '.join(command)}\n{output}"


def _apply(tree, env, patch):
    log = ""
    for command in APPLY:
        done = subprocess.run(command, cwd=tree, env=env, input=patch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log += f"$ {' '.join(command)}\n{done.stdout.decode('utf-8', 'backslashreplace')}"
        if done.returncode == 0:
            return True, log + ">>>>> Applied Patch\n"
        subprocess.run(["git", "checkout", "-q", "."], cwd=tree, env=env)
        subprocess.run(["git", "clean", "-fdq"], cwd=tree, env=env)
    return False, log + ">>>>> Patch Apply Failed\n"


def parse(output):
    result = {}
    for line in output.splitlines():
        found = LINE.match(line)
        if found:
            name, dotted, status = found.groups()
            owner = dotted[: -len(name) - 1] if dotted.endswith("." + name) else dotted
            result[f"{name} ({owner})"] = status == "ok"
    return result


def test_lists(issue_dir, origin):
    """FAIL_TO_PASS and PASS_TO_PASS, found by running before and after the gold patch."""
    _, before, _, _ = run_hidden(issue_dir, origin, None)
    applied, after, log, output = run_hidden(issue_dir, origin, (issue_dir / "gold.patch").read_bytes())
    assert applied, log
    assert after and all(after.values()), output
    fail = sorted(t for t in after if not before.get(t))
    keep = sorted(t for t in after if before.get(t))
    assert fail and keep, (fail, keep)
    return fail, keep


def report(lists, applied, results, patch):
    fail, keep = lists
    status = {
        "FAIL_TO_PASS": _sides(fail, results),
        "PASS_TO_PASS": _sides(keep, results),
        "FAIL_TO_FAIL": {"success": [], "failure": []},
        "PASS_TO_FAIL": {"success": [], "failure": []},
    }
    broken = status["FAIL_TO_PASS"]["failure"] + status["PASS_TO_PASS"]["failure"]
    row = {
        "patch_is_None": patch is None,
        "patch_exists": bool(patch),
        "patch_successfully_applied": applied,
        "resolved": bool(applied and patch and not broken),
    }
    if applied:
        row["tests_status"] = status
    return row


def _sides(names, results):
    return {
        "success": [n for n in names if results.get(n)],
        "failure": [n for n in names if not results.get(n)],
    }
