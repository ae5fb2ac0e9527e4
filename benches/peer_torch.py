#!/usr/bin/env python3
"""trajscope's forward pass beside PyTorch (f32, sdpa) on the same checkpoint, in turns in one run.

    python benches/peer_torch.py DIR [--make 0.5b] [--bench PATH] [--tokens 512,2048,8192] [--threads 1,2]
                                     [--dtypes f32,int8] [--rounds 5]

DIR is a Qwen2/Qwen3 token-classification checkpoint; with --make it is written first: the shape of Qwen2.5-0.5B with
random weights and a small vocabulary (looking up embeddings costs nothing in either). --bench is the built bench
program (default: the newest target/*/deps/engine-*). Needs torch and transformers (CPU).
Printed: medians of wall and processor seconds, and PyTorch's divided by ours (above 1: ours is faster), and the most
memory each process has held so far. With int8 also how far its values are from the ones in f32.
"""
import argparse
import glob
import os
import statistics
import subprocess
import time

import torch
import transformers

SHAPES = {
    "0.5b": dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2),
    "tiny": dict(hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2),
}


def make(folder, shape):
    config = transformers.Qwen2Config(vocab_size=2048, max_position_embeddings=32768, num_labels=1, pad_token_id=0,
                                      rope_parameters=dict(rope_type="default", rope_theta=1e6), **SHAPES[shape])
    torch.manual_seed(1)
    model = transformers.Qwen2ForTokenClassification(config).eval()
    model.save_pretrained(folder)


def newest_bench():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "target")
    found = [p for p in glob.glob(os.path.join(root, "*", "deps", "engine-*")) if os.access(p, os.X_OK) and "." not in os.path.basename(p)]
    return max(found, key=os.path.getmtime)


def peak(pid):
    """Most memory a process has held, in MB (Linux)."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


class Ours:
    """The bench program, one process a type, so that each has its own peak memory."""

    def __init__(self, program, folder, dtype):
        env = dict(os.environ, TRAJSCOPE_BENCH_MODEL=folder)
        self.dtype = dtype
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def run(self, tokens, threads, values=""):
        self.process.stdin.write(f"{tokens} {threads} {self.dtype} {values}\n")
        self.process.stdin.flush()
        wall, cpu = self.process.stdout.readline().split()
        return float(wall), float(cpu)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder")
    args.add_argument("--make", choices=SHAPES)
    args.add_argument("--bench")
    args.add_argument("--tokens", default="512,2048")
    args.add_argument("--threads", default="1,2")
    args.add_argument("--dtypes", default="f32,int8")
    args.add_argument("--rounds", type=int, default=5)
    args = args.parse_args()
    if args.make and not os.path.exists(os.path.join(args.folder, "config.json")):
        make(args.folder, args.make)
    ours = [Ours(args.bench or newest_bench(), args.folder, dtype) for dtype in args.dtypes.split(",")]
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(
        args.folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    vocab = theirs.config.vocab_size

    def run_theirs(tokens, threads):
        torch.set_num_threads(threads)
        ids = torch.tensor([[(i * 7919 + 17) % vocab for i in range(tokens)]])
        with torch.inference_mode():
            wall, cpu = time.perf_counter(), time.process_time()
            values = theirs(input_ids=ids, use_cache=False).logits[0, :, 0]
            return time.perf_counter() - wall, time.process_time() - cpu, values

    print("torch", torch.__version__, "transformers", transformers.__version__, "load", os.getloadavg())
    for threads in map(int, args.threads.split(",")):
        exact = run_theirs(300, threads)[2]
        for who in ours:
            file = f"/tmp/trajscope-values-{os.getpid()}"
            who.run(300, threads, file)
            with open(file) as values:
                difference = (torch.tensor([float(v) for v in values]) - exact).abs() / exact.std()
            os.remove(file)
            print(f"{who.dtype}: values off by at most {difference.max():.1e}, on average {difference.mean():.1e} "
                  f"standard deviations from PyTorch's ({exact.std():.2f}), 300 tokens")
        for tokens in map(int, args.tokens.split(",")):
            rows = [[who.run(tokens, threads) for who in ours] + [run_theirs(tokens, threads)] for _ in range(args.rounds)]
            medians = [[statistics.median(row[i][what] for row in rows) for what in (0, 1)] for i in range(len(ours) + 1)]
            wall, cpu = medians[-1]
            print(f"{tokens} tokens, {threads} thread(s): torch {tokens / wall:.0f} tok/s, wall {wall:.3f} s, cpu {cpu:.3f} s, "
                  f"peak {peak(os.getpid())} MB; load {os.getloadavg()[0]:.1f}")
            for who, (w, c) in zip(ours, medians):
                print(f"    {who.dtype}: {tokens / w:.0f} tok/s, wall {w:.3f} s = {wall / w:.2f}x, cpu {c:.3f} s = "
                      f"{cpu / max(c, 1e-9):.2f}x, peak {peak(who.process.pid)} MB", flush=True)
    for who in ours:
        who.close()


if __name__ == "__main__":
    main()
