#!/usr/bin/env python3
"""Checks sample trajectories without make.py:  python3 verify.py DIR

Reads every trajectory, takes the patch recorded in it, applies it to a fresh
clone, runs the hidden tests and compares the outcome with the label of the
report beside it and with the prediction. Exit code 1 if anything differs.

    python3 verify.py --same A B

compares the files of two sets, without the durations in them.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import grade  # noqa: E402
from box import build_origin  # noqa: E402


def trajectories(root):
    """Yield (file, run directory, instance id, patch)."""
    for path in sorted(root.rglob("output.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            yield path, path.parent, row["instance_id"], row["test_result"]["git_patch"]
    for path in sorted([*root.rglob("*.traj"), *root.rglob("*.traj.json")]):
        iid = path.name.removesuffix(".json").removesuffix(".traj")
        run = path.parent.parent if path.parent.name == iid else path.parent
        yield path, run, iid, json.loads(path.read_text())["info"]["submission"]


def predictions(run):
    found = {}
    for path in [*run.glob("preds.json"), *run.glob("all_preds.jsonl"), *run.glob("output.swebench.jsonl")]:
        text = path.read_text()
        rows = json.loads(text).values() if path.suffix == ".json" else map(json.loads, text.splitlines())
        found.update({row["instance_id"]: row["model_patch"] for row in rows})
    return found


def label(run, iid):
    for path in run.glob(f"logs/run_evaluation/*/*/{iid}/report.json"):
        return json.loads(path.read_text())[iid]["resolved"]
    for path in run.glob("*.json"):
        report = json.loads(path.read_text())
        if report.get("schema_version") == 2 and iid in report["submitted_ids"]:
            return iid in report["resolved_ids"]
    return None


def main(root):
    wrong = count = 0
    with tempfile.TemporaryDirectory(prefix="verify-") as tmp:
        origins = {path.name: Path(tmp) / path.name for path in (HERE / "issues").iterdir()}
        lists = {}
        for iid, origin in origins.items():
            build_origin(HERE / "issues" / iid, origin)
            lists[iid] = grade.test_lists(HERE / "issues" / iid, origin)
        for path, run, iid, patch in trajectories(root):
            count += 1
            applied, results = False, {}
            if patch.strip():
                applied, results, _, _ = grade.run_hidden(HERE / "issues" / iid, origins[iid], patch.encode())
            again = grade.report(lists[iid], applied, results, patch)["resolved"]
            said = label(run, iid)
            same_patch = predictions(run).get(iid) == patch
            good = same_patch and (said == again or (said is None and not patch))
            wrong += not good
            print(f"{'ok   ' if good else 'WRONG'} {path.relative_to(root)}: label {said}, hidden tests {again}, prediction {'same' if same_patch else 'differs'}")
    print(f"{count} trajectories, {wrong} wrong")
    return 1 if wrong else 0


DURATION = re.compile(r"(Ran \d+ tests? in |\"execution_time\": |: fast: )[\d.e-]+(s?)")


def same(one, two):
    """The names of the files that are not the same but for durations."""
    names = {p.relative_to(root) for root in (one, two) for p in root.rglob("*") if p.is_file() and "_source" not in p.parts}
    texts = [{n: DURATION.sub(r"\1#\2", (root / n).read_text()) for n in names if (root / n).exists()} for root in (one, two)]
    return sorted(str(n) for n in names if n.name != "README.md" and texts[0].get(n) != texts[1].get(n))


if __name__ == "__main__":
    if sys.argv[1] == "--same":
        different = same(Path(sys.argv[2]), Path(sys.argv[3]))
        print("\n".join(different) or "the same but for durations")
        sys.exit(1 if different else 0)
    sys.exit(main(Path(sys.argv[1]).resolve()))
