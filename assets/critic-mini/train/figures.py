"""The figures of the card: the critic's held-out scores beside baselines on the same folds.

python figures.py --dump runs.jsonl --splits splits.json --trajectories FOLDER --scores cv1.jsonl cv2.jsonl ...

Each scores file holds the runs of the folds that its model has not seen. Baselines are trained for each fold on the
other folds. Everything is measured on the last action of a run, within each source; pairs are (resolved, not
resolved) runs of one agent at one issue.
"""
import argparse, collections, glob, gzip, json, os, sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

CLASSES = ["0", "1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+"]


def group(source):
    return "SWE-agent/mini-swe-agent PR 814/816" if "PR 814/816" in source else source


def key(row):
    return row["source"], row["instance_id"], str(row["attempt"])


def within(y, s, g, mask):
    parts = []
    for name in sorted(set(g[mask])):
        m = mask & (g == name)
        if 3 <= y[m].sum() <= m.sum() - 3:
            parts.append((m.sum(), roc_auc_score(y[m], s[m]), name))
    total = sum(n for n, _, _ in parts)
    return (sum(n * a for n, a, _ in parts) / total if total else float("nan")), parts


def pairs(y, s, agent, instance, mask):
    by = collections.defaultdict(list)
    for i in np.where(mask)[0]:
        by[agent[i], instance[i]].append(i)
    right, n = 0.0, 0
    for runs in by.values():
        for a in runs:
            for b in runs:
                if y[a] == 1 and y[b] == 0:
                    n += 1
                    right += 1.0 if s[a] > s[b] else 0.5 if s[a] == s[b] else 0.0
    return (right / n if n else float("nan")), n


def interval(measure, instance, rounds=300):
    """95 % by drawing issues with replacement."""
    rng = np.random.default_rng(1)
    names, inverse = np.unique(instance, return_inverse=True)
    where = [np.where(inverse == i)[0] for i in range(len(names))]
    out = []
    for _ in range(rounds):
        out.append(measure(np.concatenate([where[i] for i in rng.integers(0, len(names), len(names))])))
    return np.nanpercentile(out, [2.5, 97.5])


def balance(y, g):
    w = np.ones(len(y))
    for name in set(g):
        for v in (0, 1):
            m = (g == name) & (y == v)
            if m.any():
                w[m] = min((g == name).sum() / (2 * m.sum()), 6.0)
    return w


def features(row):
    """Numbers from the last action's line: the process and the patch, as the critic is told them."""
    line = [s[0] for s in row["segments"] if s[1] is not None][-1].split()
    out = {}
    for word in line[1:]:
        name, _, size = word.partition("=")
        out[name] = CLASSES.index(size) + 1 if size else 1
    return out


def documents(folder, wanted):
    """What the agents wrote, the end of it, for TF-IDF."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl.gz"))):
        for line in gzip.open(path, "rt"):
            run = json.loads(line)
            told = "\n".join((s["thought"] or "") + "\n" + str(s["action"] or "") for s in run["steps"])
            found[key(run)] = told[-12000:] + "\n" + (run["patch"] or "")[:4000]
    return [found[k] for k in wanted]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("--splits", required=True)
    p.add_argument("--trajectories")
    p.add_argument("--scores", nargs="+", required=True)
    args = p.parse_args()
    folds = {k: v["fold_instance"] for k, v in json.load(open(args.splits)).items()}
    rows = [json.loads(line) for line in open(args.dump)]
    rows = [r for r in rows if any(s[1] is not None for s in r["segments"])]
    scores = {}
    for path in args.scores:
        for line in open(path):
            run = json.loads(line)
            scores[key(run)] = run["values"]
    y = np.array([int(r["resolved"]) for r in rows])
    g = np.array([group(r["source"]) for r in rows])
    agent = np.array(["%s %s" % (r["agent"], r["model"]) for r in rows])
    instance = np.array([r["instance_id"] for r in rows])
    fold = np.array([folds[i] for i in instance])
    empty = np.array([r["empty"] for r in rows])
    seen = np.array([key(r) in scores for r in rows])
    print("runs %d, with held-out scores %d, empty patches %d" % (len(rows), seen.sum(), empty.sum()))
    given = {"critic": np.array([scores[key(r)][-1] if key(r) in scores else np.nan for r in rows])}

    found = [features(r) for r in rows]
    names = sorted(n for n, c in collections.Counter(n for f in found for n in f).items() if c >= 20)
    X = np.array([[f.get(n, 0) for n in names] for f in found], float)
    boosted, agents = np.zeros(len(y)), np.zeros(len(y))
    words = documents(args.trajectories, [key(r) for r in rows]) if args.trajectories else None
    text = np.zeros(len(y))
    for f in sorted(set(fold)):
        a, b = fold != f, fold == f
        w = balance(y[a], g[a])
        for seed in (0, 1):
            model = HistGradientBoostingClassifier(max_iter=150, learning_rate=0.04, max_leaf_nodes=12, max_features=0.3,
                                                   min_samples_leaf=20, l2_regularization=5.0, random_state=seed)
            boosted[b] += model.fit(X[a], y[a], sample_weight=w).predict_proba(X[b])[:, 1] / 2
        for name in set(g):
            agents[b & (g == name)] = y[a & (g == name)].mean() if (a & (g == name)).any() else y[a].mean()
        if words:
            tfidf = TfidfVectorizer(max_features=30000, min_df=3, sublinear_tf=True)
            A = tfidf.fit_transform([words[i] for i in np.where(a)[0]])
            text[b] = LogisticRegression(C=1.0, max_iter=200).fit(A, y[a], sample_weight=w).predict_proba(
                tfidf.transform([words[i] for i in np.where(b)[0]]))[:, 1]
    given["boosted trees on the same words"] = boosted
    given["agent only"] = agents
    if words:
        given["TF-IDF + logistic regression"] = text
    for name, s in given.items():
        for what, mask in (("all", seen), ("non-empty", seen & ~empty)):
            auc, parts = within(y, s, g, mask)
            low, high = interval(lambda i: within(y[i], s[i], g[i], mask[i])[0], instance)
            acc, n = pairs(y, s, agent, instance, mask)
            plow, phigh = interval(lambda i: pairs(y[i], s[i], agent[i], instance[i], mask[i])[0], instance, 100)
            print("%-32s %-9s within-source AUC %.3f [%.3f, %.3f]  pairs %.3f [%.3f, %.3f] of %d  pooled %.3f"
                  % (name, what, auc, low, high, acc, plow, phigh, n, roc_auc_score(y[mask], s[mask])), flush=True)
            if what == "all":
                by = [within(y, s, g, mask & (fold == f))[0] for f in sorted(set(fold[mask]))]
                print("    by fold: " + ", ".join("%.3f" % a for a in by))
                if name == "critic":
                    for k, a, source in parts:
                        print("    %-75s %4d runs  %.0f %% resolved  AUC %.3f"
                              % (source[-75:], k, 100 * y[mask & (g == source)].mean(), a))
    s = given["critic"]
    if (seen & empty).any():
        print("mean last value: empty patches %.3f, others not resolved %.3f, resolved %.3f" % (
            s[seen & empty].mean(), s[seen & ~empty & (y == 0)].mean(), s[seen & (y == 1)].mean()))


if __name__ == "__main__":
    main()
