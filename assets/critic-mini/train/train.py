"""Trains the small embedded critic by temporal differences. See ../README.md for the command and the figures.

Input: the JSON lines of `cargo run --release --example dump_critic_text` (one run a line: source, agent,
instance_id, attempt, resolved, empty, segments of [text, byte offset of the value or null]) and its `--vocabulary`.
The text is made by the program's own rendering, so that training and inference read the same bytes.
"""
import argparse, collections, json, math, os, random, time

import numpy as np
import torch
from torch.nn.utils import parametrize
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import Qwen2Config, Qwen2ForTokenClassification

GAMMA = 0.99
UNKNOWN, END = "<|unk|>", "<|im_end|>"


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dump", required=True)
    p.add_argument("--vocabulary", required=True)
    p.add_argument("--splits", required=True, help="splits.json: instance id -> fold_instance (1-4)")
    p.add_argument("--valid", type=int, nargs="*", default=[1], help="folds held out; none = train on all")
    p.add_argument("--out", help="folder of the critic to write")
    p.add_argument("--scores", help="JSON lines of the scores of the held-out runs")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--ffn", type=int, default=160)
    p.add_argument("--window", type=int, nargs=2, default=[64, 192], help="tokens of a run seen at once, from-to")
    p.add_argument("--long", type=int, default=1, help="last epochs, which see long stretches")
    p.add_argument("--long-window", type=int, default=768)
    p.add_argument("--tail", type=float, default=0.7, help="share of views that show the end of the run")
    p.add_argument("--head", type=float, default=0.15, help="share of views that show the beginning")
    p.add_argument("--lam", type=float, default=0.5, help="lambda of TD(lambda)")
    p.add_argument("--last", type=float, default=1.0, help="weight of the last action against all others together")
    p.add_argument("--drop-words", type=float, default=0.2)
    p.add_argument("--drop-patch", type=float, default=0.15)
    p.add_argument("--average", type=float, default=0.005, help="rate of the target network's moving average")
    p.add_argument("--decay", type=float, default=0.2)
    p.add_argument("--each", type=int, default=0, help="validate every so many epochs")
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


class Run:
    """One run: token ids, the positions of its values, its outcome."""

    __slots__ = ("ids", "at", "y", "meta", "patch", "group", "lines")

    def __init__(self, row, words):
        ids, at, lines, patch = [], [], [], None
        for text, end in row["segments"]:
            told = text.split()
            base = len(ids)
            lines.append(base)
            ids.extend(words[w] for w in told)
            if end is not None:
                # The value stands at the last token of an action's line.
                assert told[-1] == END and end == len(text.rstrip("\n").encode())
                at.append(len(ids) - 1)
                if "patch" in told or "patch-empty" in told:
                    patch = base + told.index("patch" if "patch" in told else "patch-empty")
        self.ids, self.at, self.patch = np.array(ids), np.array(at), patch
        self.lines = np.array(lines)
        self.y = float(row["resolved"])
        self.meta = {k: row.get(k) for k in ("source", "agent", "model", "instance_id", "attempt", "resolved", "empty")}
        self.group = "SWE-agent/mini-swe-agent PR 814/816" if "PR 814/816" in row["source"] else row["source"]


def weights(runs):
    """Within each source solved and unsolved runs weigh the same: who ran says nothing about the outcome."""
    count = collections.Counter((r.group, r.y) for r in runs)
    total = collections.Counter(r.group for r in runs)
    return {k: min(total[k[0]] / (2 * n), 6.0) for k, n in count.items()}


def sample(run, args, rng, words, window):
    """A training view: maybe without its patch words, some words unknown, at most `window` tokens."""
    ids, at, n = run.ids, run.at, len(run.at)
    if run.patch is not None and rng.random() < args.drop_patch:
        keep = [words["patch-unknown"], words[END]]
        tail = ids[run.at[-1] + 1 :]
        ids = np.concatenate([ids[: run.patch], keep, tail])
        at = at.copy()
        at[-1] = run.patch + 1
    first, last = 0, len(ids)
    if len(ids) > window:
        # Mostly the end of the run, else its beginning or any other stretch of it.
        draw = rng.random()
        last = len(ids) if draw < args.tail else window if draw < args.tail + args.head else rng.randrange(window, len(ids))
        first = last - window
        # Begin with a whole line.
        later = run.lines[(run.lines >= first) & (run.lines < at[-1])] if first else []
        first = int(later[0]) if len(later) and later[0] < last else first
    seen = np.where((at >= first) & (at < last))[0]
    ids = ids[first:last].copy()
    noise = np.array([rng.random() < args.drop_words for _ in range(len(ids))])
    noise[at[seen] - first] = False
    ids[noise] = words[UNKNOWN]
    return ids, at[seen] - first, seen, n


def td_targets(values, seen, n, outcome, lam):
    """TD(lambda): G_T = outcome; G_t = gamma * ((1-lambda) * V'(t+1) + lambda * G_{t+1}).

    A stretch that ends before the run does starts from gamma^(T-t) * outcome instead.
    """
    g = np.empty(len(seen))
    nxt = GAMMA ** (n - 1 - seen[-1]) * outcome
    for i in range(len(seen) - 1, -1, -1):
        g[i] = nxt
        nxt = GAMMA * ((1 - lam) * values[i] + lam * nxt)
    return g


def batches(runs, args, rng, epoch):
    """`(window, indices)`: runs of like length together, so that little is padded; order random.

    Most epochs see short stretches (every line carries the counts of the whole run, so little is lost, and an epoch is
    cheap); the last ones see long stretches, so that values are right in the middle of long runs as well.
    """
    far = epoch >= args.epochs - args.long
    cap = args.long_window if far else args.window[1]
    order = sorted(range(len(runs)), key=lambda i: min(len(runs[i].ids), cap) + rng.random() * 64)
    chunks = [order[i : i + args.batch] for i in range(0, len(order), args.batch)]
    rng.shuffle(chunks)
    return [(cap if far else rng.randint(*args.window), chunk) for chunk in chunks]


def pad(rows):
    out = torch.zeros(len(rows), max(len(r) for r in rows), dtype=torch.long)
    for i, r in enumerate(rows):
        out[i, : len(r)] = torch.from_numpy(r)
    return out


def forward(model, ids):
    # Padding stands at the right: causal attention never sees it, so no mask is needed.
    return model(input_ids=ids, use_cache=False).logits.squeeze(-1)


@torch.no_grad()
def evaluate(model, runs):
    """Values of every action of whole runs, as at inference."""
    model.eval()
    return [forward(model, torch.from_numpy(r.ids)[None])[0, torch.from_numpy(r.at)].numpy() for r in runs]


@torch.no_grad()
def glance(model, runs, tail=160):
    """Value of the last action from the end of the run only: cheap, to watch training."""
    model.eval()
    out = np.empty(len(runs))
    order = sorted(range(len(runs)), key=lambda i: runs[i].at[-1])
    for begin in range(0, len(runs), 64):
        part = order[begin : begin + 64]
        first = [max(0, runs[i].at[-1] + 1 - tail) for i in part]
        values = forward(model, pad([runs[i].ids[f : runs[i].at[-1] + 1] for i, f in zip(part, first)]))
        for row, (i, f) in enumerate(zip(part, first)):
            out[i] = values[row, runs[i].at[-1] - f]
    return out


def auc(y, s):
    y, s = np.asarray(y), np.asarray(s)
    order = np.argsort(s, kind="mergesort")
    ranks = np.empty(len(s))
    ranks[order] = np.arange(1, len(s) + 1)
    for v in np.unique(s):
        m = s == v
        ranks[m] = ranks[m].mean()
    pos = y.sum()
    return (ranks[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))


def within(runs, scores):
    """Weighted mean over sources of the AUC within each."""
    by = collections.defaultdict(list)
    for r, s in zip(runs, scores):
        by[r.group].append((r.y, s))
    parts = [(len(v), auc(*zip(*v))) for v in by.values() if 3 <= sum(y for y, _ in v) <= len(v) - 3]
    return sum(n * a for n, a in parts) / sum(n for n, _ in parts)


class Words(torch.nn.Module):
    """Embeddings as a sum: a share of the field, a share that grows with the size class, a share of its own.

    `edits=5-8` and `edits=9-16` so begin as neighbours, and what is learnt of one tells of the other. A plain table
    of embeddings is what is shipped.
    """

    def __init__(self, words, own=0.4):
        super().__init__()
        names = sorted(words, key=words.get)
        fields = {f: i for i, f in enumerate(dict.fromkeys(w.split("=")[0] for w in names))}
        parts, seen = torch.zeros(len(names), 2 * len(fields)), collections.Counter()
        for i, word in enumerate(names):
            at = fields[word.split("=")[0]]
            parts[i, at] = 1.0 if "=" in word else 0.0
            parts[i, len(fields) + at] = seen[at] / 4.5 - 1.0 if "=" in word else 0.0
            seen[at] += 1
        alone = torch.tensor([own if "=" in w else 1.0 for w in names])
        self.register_buffer("parts", torch.cat([parts, torch.diag(alone)], dim=1))

    def forward(self, shares):
        return self.parts @ shares

    def right_inverse(self, table):
        return torch.randn(self.parts.shape[1], table.shape[1]) * 0.3


def build(args, words):
    size = len(words)
    config = Qwen2Config(
        vocab_size=size, hidden_size=args.hidden, intermediate_size=args.ffn, num_hidden_layers=args.layers,
        num_attention_heads=args.heads, num_key_value_heads=args.heads // 2, max_position_embeddings=8192,
        rope_theta=10000.0, num_labels=1, classifier_dropout=0.1, attention_dropout=0.0, bos_token_id=None,
        eos_token_id=1, pad_token_id=0, tie_word_embeddings=False, use_sliding_window=False)
    config._attn_implementation = "sdpa"
    model = Qwen2ForTokenClassification(config)
    parametrize.register_parametrization(model.model.embed_tokens, "weight", Words(words))
    torch.nn.init.zeros_(model.score.weight)
    torch.nn.init.constant_(model.score.bias, 0.4)
    return model


def train(args, runs, valid, words):
    rng = random.Random(args.seed)
    torch.manual_seed(args.seed)
    model, target = build(args, words), build(args, words)
    target.load_state_dict(model.state_dict())
    target.eval()
    decay, plain = [], []
    for name, p in model.named_parameters():
        (decay if p.ndim == 2 else plain).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": args.decay}, {"params": plain, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.98))
    weight = weights(runs)
    steps = args.epochs * math.ceil(len(runs) / args.batch)
    step, began = 0, time.time()
    for epoch in range(args.epochs):
        total = 0.0
        for window, chunk in batches(runs, args, rng, epoch):
            model.train()
            for group in opt.param_groups:
                warm = min(1.0, (step + 1) / (0.05 * steps))
                group["lr"] = args.lr * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))
            views = [sample(runs[i], args, rng, words, window) for i in chunk]
            ids = pad([v[0] for v in views])
            with torch.no_grad():
                bootstrap = forward(target, ids).numpy()
            values = forward(model, ids)
            loss = torch.zeros(())
            for row, (i, (_, at, seen, n)) in enumerate(zip(chunk, views)):
                if len(seen) == 0:
                    continue
                goal = td_targets(bootstrap[row, at], seen, n, runs[i].y, args.lam)
                off = (values[row, torch.from_numpy(at)] - torch.from_numpy(goal).float()) ** 2
                w = weight[(runs[i].group, runs[i].y)]
                if seen[-1] == n - 1:
                    rest = off[:-1].mean() if len(off) > 1 else off[-1]
                    loss = loss + w * (args.last * off[-1] + rest)
                else:
                    loss = loss + w * off.mean()
            loss = loss / len(chunk)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            total += loss.item()
            with torch.no_grad():
                for a, b in zip(target.parameters(), model.parameters()):
                    a.lerp_(b, args.average)
        note = ""
        if valid and (epoch + 1 == args.epochs or args.each and (epoch + 1) % args.each == 0):
            note = "  within-source AUC (last action) valid %.4f, its moving average %.4f" % (
                within(valid, glance(model, valid)), within(valid, glance(target, valid)))
        print("epoch %d loss %.4f %.0f s%s" % (epoch + 1, total / len(range(0, len(runs), args.batch)),
                                               time.time() - began, note), flush=True)
    # The target network is the moving average of the weights: steadier than the last step, and what is shipped.
    return target


def export(model, words, out):
    os.makedirs(out, exist_ok=True)
    parametrize.remove_parametrizations(model.model.embed_tokens, "weight")
    model.save_pretrained(out)
    tok = Tokenizer(models.WordLevel(words, unk_token=UNKNOWN))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.add_special_tokens([UNKNOWN, END])
    tok.save(os.path.join(out, "tokenizer.json"))


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    with open(args.vocabulary) as f:
        words = {w: i for i, w in enumerate(f.read().split("\n")) if w}
    with open(args.splits) as f:
        folds = {k: v["fold_instance"] for k, v in json.load(f).items()}
    with open(args.dump) as f:
        runs = [Run(json.loads(line), words) for line in f]
    runs = [r for r in runs if len(r.at)]
    held = [r for r in runs if folds[r.meta["instance_id"]] in args.valid]
    used = [r for r in runs if folds[r.meta["instance_id"]] not in args.valid]
    print("%d runs to train on, %d held out, %d words" % (len(used), len(held), len(words)), flush=True)
    model = train(args, used, held, words)
    print("parameters", sum(v.numel() for k, v in model.state_dict().items() if "parametriz" not in k)
          + len(words) * args.hidden, flush=True)
    if args.scores:
        with open(args.scores, "w") as f:
            for run, values in zip(held, evaluate(model, held)):
                f.write(json.dumps({**run.meta, "values": [round(float(v), 6) for v in values]}) + "\n")
    if args.out:
        export(model, words, args.out)


main()
