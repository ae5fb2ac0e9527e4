#!/usr/bin/env python3
"""trajscope's forward pass beside PyTorch (f32, sdpa) on the same checkpoint, in turns in one run.

    python benches/peer_torch.py DIR [--make 0.5b] [--bench PATH] [--tokens 512,2048] [--threads 1,2] [--rounds 5]

DIR is a Qwen2/Qwen3 token-classification checkpoint; with --make it is written first: the shape of Qwen2.5-0.5B with
random weights and a small vocabulary (looking up embeddings costs nothing in either). --bench is the built bench
program (default: the newest target/*/deps/engine-*). Needs torch and transformers (CPU).
Printed: medians of wall and processor seconds, and PyTorch's divided by ours (above 1: ours is faster).
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


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder")
    args.add_argument("--make", choices=SHAPES)
    args.add_argument("--bench")
    args.add_argument("--tokens", default="512,2048")
    args.add_argument("--threads", default="1,2")
    args.add_argument("--rounds", type=int, default=5)
    args = args.parse_args()
    if args.make and not os.path.exists(os.path.join(args.folder, "config.json")):
        make(args.folder, args.make)
    env = dict(os.environ, TRAJSCOPE_BENCH_MODEL=args.folder)
    ours = subprocess.Popen([args.bench or newest_bench(), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(
        args.folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    vocab = theirs.config.vocab_size

    def run_ours(tokens, threads):
        ours.stdin.write(f"{tokens} {threads}\n")
        ours.stdin.flush()
        wall, cpu = ours.stdout.readline().split()
        return float(wall), float(cpu)

    def run_theirs(tokens, threads):
        torch.set_num_threads(threads)
        ids = torch.tensor([[(i * 7919 + 17) % vocab for i in range(tokens)]])
        with torch.inference_mode():
            wall, cpu = time.perf_counter(), time.process_time()
            theirs(input_ids=ids, use_cache=False)
            return time.perf_counter() - wall, time.process_time() - cpu

    print("torch", torch.__version__, "transformers", transformers.__version__, "load", os.getloadavg())
    for threads in map(int, args.threads.split(",")):
        run_ours(64, threads)
        run_theirs(64, threads)
        for tokens in map(int, args.tokens.split(",")):
            rows = [(run_ours(tokens, threads), run_theirs(tokens, threads)) for _ in range(args.rounds)]
            median = lambda who, what: statistics.median(row[who][what] for row in rows)
            wall, cpu = (median(0, 0), median(1, 0)), (median(0, 1), median(1, 1))
            print(f"{tokens} tokens, {threads} thread(s): ours {tokens / wall[0]:.0f} tok/s, torch {tokens / wall[1]:.0f} tok/s; "
                  f"wall {wall[0]:.3f} / {wall[1]:.3f} s = {wall[1] / wall[0]:.2f}x; "
                  f"cpu {cpu[0]:.3f} / {cpu[1]:.3f} s = {cpu[1] / max(cpu[0], 1e-9):.2f}x; load {os.getloadavg()[0]:.1f}", flush=True)
    ours.stdin.close()
    ours.wait()


if __name__ == "__main__":
    main()
