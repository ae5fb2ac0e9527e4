#!/usr/bin/env python3
"""Makes the sample trajectories:  python3 make.py OUT [WORD ...]

Every step of every script in runs/ is carried out in a fresh clone; what the
commands print is recorded; the patch is what `git diff` says at the end; the
label comes from the hidden tests. With WORDs only scripts whose name holds
one of them are run (for writing new ones; no predictions or reports then).
Needs git, bash, patch, Python 3.11 and the right to make /testbed and
/workspace, so run it in a container.
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import grade  # noqa: E402
import mini  # noqa: E402
import openhands  # noqa: E402
import sweagent  # noqa: E402
from box import build_origin  # noqa: E402
from script import Clock, load  # noqa: E402

FAMILIES = {
    "openhands": openhands,
    "sweagent-v0": sweagent,
    "sweagent-v1": sweagent,
    "mini-v1": mini,
    "mini-v2": mini,
}


@dataclass
class Issue:
    iid: str
    dir: Path
    origin: Path
    base: str
    text: str
    version: str
    lists: tuple

    def row(self):
        """The row of the data set, as OpenHands copies it into its output."""
        return {
            "repo": self.iid.rsplit("-", 1)[0].replace("__", "/"),
            "instance_id": self.iid,
            "base_commit": self.base,
            "patch": (self.dir / "gold.patch").read_text(),
            "problem_statement": self.text,
            "hints_text": "",
            "created_at": (self.dir / "commits.txt").read_text().splitlines()[-1].split(" ")[0],
            "version": self.version,
            "FAIL_TO_PASS": json.dumps(self.lists[0]),
            "PASS_TO_PASS": json.dumps(self.lists[1]),
        }


def load_issues(work):
    issues = {}
    for path in sorted((HERE / "issues").iterdir()):
        origin = work / path.name
        base = build_origin(path, origin)
        text = (path / "issue.txt").read_text()
        version = (path / "version.txt").read_text().strip()
        lists = grade.test_lists(path, origin)
        issues[path.name] = Issue(path.name, path, origin, base, text, version, lists)
    return issues


def dump(path, value, indent):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent) + "\n")


def write_openhands(out, issue, script, root, patch):
    place = out / script.head["dir"]
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "output.jsonl", "a") as file:
        file.write(json.dumps(root, ensure_ascii=False) + "\n")
    dump(place / "metadata.json", root["metadata"], None)
    with open(place / "output.swebench.jsonl", "a") as file:
        file.write(json.dumps(prediction(issue, script, patch), ensure_ascii=False) + "\n")


def write_sweagent(out, issue, script, root, patch):
    place = out / script.head["dir"]
    old = script.head["family"] == "sweagent-v0"
    if old:
        dump(place / f"{issue.iid}.traj", root, 2)
        with open(place / "all_preds.jsonl", "a") as file:
            file.write(json.dumps(prediction(issue, script, patch)) + "\n")
    else:
        dump(place / issue.iid / f"{issue.iid}.traj", root, 2)
        dump(place / issue.iid / f"{issue.iid}.pred", prediction(issue, script, patch), None)
        add_pred(place / "preds.json", issue, script, patch)


def write_mini(out, issue, script, root, patch):
    place = out / script.head["dir"]
    dump(place / issue.iid / f"{issue.iid}.traj.json", root, 2)
    add_pred(place / "preds.json", issue, script, patch)


def add_pred(path, issue, script, patch):
    preds = json.loads(path.read_text()) if path.exists() else {}
    preds[issue.iid] = prediction(issue, script, patch)
    dump(path, preds, 2)


def prediction(issue, script, patch):
    return {"model_name_or_path": script.head["model"], "instance_id": issue.iid, "model_patch": patch}


WRITERS = {"openhands": write_openhands, "sweagent": write_sweagent, "mini": write_mini}


def write_instance_report(out, issue, script, patch, applied, log, output, row):
    """The directory the SWE-bench harness leaves for one instance."""
    model = script.head["model"].replace("/", "__")
    run_id = script.head["run_id"]
    place = out / script.head["dir"] / "logs/run_evaluation" / run_id / model / issue.iid
    place.mkdir(parents=True)
    (place / "patch.diff").write_text(patch)
    (place / "run_instance.log").write_text(log)
    if applied:
        (place / "test_output.txt").write_text(f">>>>> Start Test Output\n{output}>>>>> End Test Output\n")
        dump(place / "report.json", {issue.iid: row}, 4)


def write_run_report(out, script, rows):
    """`<model>.<run_id>.json`, schema version 2; rows: {instance: report or None}."""
    groups = {"completed": [], "empty_patch": [], "resolved": [], "unresolved": [], "error": []}
    for iid, row in sorted(rows.items()):
        if not row["patch_exists"]:
            groups["empty_patch"].append(iid)
        elif not row["patch_successfully_applied"]:
            groups["error"].append(iid)
        else:
            groups["completed"].append(iid)
            groups["resolved" if row["resolved"] else "unresolved"].append(iid)
    report = {"total_instances": len(rows), "submitted_instances": len(rows)}
    report |= {f"{name}_instances": len(ids) for name, ids in groups.items()}
    report |= {f"{name}_ids": ids for name, ids in groups.items()}
    report |= {"incomplete_ids": [], "submitted_ids": sorted(rows), "schema_version": 2}
    model = script.head["model"].replace("/", "__")
    dump(out / script.head["dir"] / f"{model}.{script.head['run_id']}.json", report, 4)


def main(argv):
    if not argv:
        raise SystemExit(__doc__)
    out, words = Path(argv[0]), argv[1:]
    if any(out.glob("*/")) and not words:
        raise SystemExit(f"{out} is not empty")
    with tempfile.TemporaryDirectory(prefix="samples-") as tmp:
        issues = load_issues(Path(tmp))
        reports = {}
        for path in sorted((HERE / "runs").glob("*/*.txt")):
            if words and not any(word in f"{path.parent.name}/{path.stem}" for word in words):
                continue
            issue = issues[path.parent.name]
            place = openhands.place(issue) if path.stem.startswith("openhands") else "/testbed"
            script = load(path, place)
            script.head["issue"] = issue.iid
            one_run(out, issue, script, reports)
        for script, rows in reports.values():
            if script.head["family"] != "mini-v1":
                write_run_report(out, script, rows)


def one_run(out, issue, script, reports):
    family = script.head["family"]
    root, patch = FAMILIES[family].run(issue, script, Clock(script.head["start"]))
    WRITERS[family.split("-")[0]](out, issue, script, root, patch)
    applied, results, log, output = False, {}, "", ""
    if patch.strip():
        applied, results, log, output = grade.run_hidden(issue.dir, issue.origin, patch.encode())
    row = grade.report(issue.lists, applied, results, patch)
    if family.startswith("mini") and patch.strip():
        write_instance_report(out, issue, script, patch, applied, log, output, row)
    reports.setdefault(script.head["dir"], (script, {}))[1][issue.iid] = row
    wanted = script.head["resolved"] == "yes"
    print(f"| {issue.iid} | `{script.head['dir']}` | {family} | {'yes' if row['resolved'] else 'no'} | {script.head['note']} |", flush=True)
    if row["resolved"] != wanted:
        raise SystemExit(f"{script.name} says resolved: {script.head['resolved']}, the hidden tests say otherwise\n{log}{output}")


if __name__ == "__main__":
    main(sys.argv[1:])
