#!/usr/bin/env python3
"""trajscope's forward pass beside llama.cpp's on the same f32 weights, in turns in one run.

    python benches/peer_llama.py DIR [--bench PATH] [--tokens 512,2048] [--threads 1,2] [--rounds 3] [--flash]

llama.cpp runs in its per-token embedding mode (pooling none: what a critic needs). DIR is a Qwen2 checkpoint (see
peer_torch.py --make); its weights are written beside it as f32 GGUF once, without a tokenizer. Needs the packages
llama-cpp-cffi 0.4.42 (llama.cpp of spring 2025 for the CPU: the printed line says for which instructions), gguf, cffi,
numpy, torch and
safetensors. Speed only: the two are not compared in values.
"""
import argparse
import json
import os
import statistics
import time

import gguf
import numpy as np
from llama._llama_cpp_cpu import ffi, lib
from safetensors import safe_open

from peer_torch import Ours, newest_bench, peak

PARTS = {
    "input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight", "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.weight": "attn_k.weight", "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.weight": "attn_v.weight", "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.weight": "attn_output.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
}


def write_gguf(folder, path):
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(theta)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    with safe_open(os.path.join(folder, "model.safetensors"), "numpy") as tensors:
        for name in tensors.keys():
            if name == "model.embed_tokens.weight":
                to = "token_embd.weight"
            elif name == "model.norm.weight":
                to = "output_norm.weight"
            elif name.startswith("model.layers."):
                _, _, layer, part = name.split(".", 3)
                to = f"blk.{layer}.{PARTS[part]}"
            else:
                continue
            writer.add_tensor(to, tensors.get_tensor(name).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Theirs:
    def __init__(self, path, flash):
        self.ffi, self.lib = ffi, lib
        self.lib.llama_backend_init()
        print("llama.cpp:", self.ffi.string(self.lib.llama_print_system_info()).decode())
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = self.lib.llama_model_load_from_file(path.encode(), params)
        assert self.model != self.ffi.NULL, f"llama.cpp cannot load {path}"
        self.flash = flash

    def run(self, ids, threads):
        """Wall and processor seconds of a fresh context's pass; making the context is not counted."""
        lib, tokens = self.lib, len(ids)
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = tokens
        params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.pooling_type = 0
        params.flash_attn = self.flash
        context = lib.llama_init_from_model(self.model, params)
        assert context != self.ffi.NULL, "no context"
        batch = lib.llama_batch_init(tokens, 0, 1)
        batch.n_tokens = tokens
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
            batch.seq_id[i][0] = 0
        wall, cpu = time.perf_counter(), time.process_time()
        assert lib.llama_decode(context, batch) == 0, "llama_decode failed"
        assert lib.llama_get_embeddings_ith(context, tokens - 1) != self.ffi.NULL, "an embedding of every token"
        spent = time.perf_counter() - wall, time.process_time() - cpu
        lib.llama_batch_free(batch)
        lib.llama_free(context)
        return spent


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder")
    args.add_argument("--bench")
    args.add_argument("--tokens", default="512,2048")
    args.add_argument("--threads", default="1,2")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--dtypes", default="f32,int8")
    args.add_argument("--flash", action="store_true", help="llama.cpp's flash attention (on the CPU slower or faster: try both)")
    args = args.parse_args()
    path = os.path.join(args.folder, "model-f32.gguf")
    if not os.path.exists(path):
        write_gguf(args.folder, path)
    ours = [Ours(args.bench or newest_bench(), args.folder, dtype) for dtype in args.dtypes.split(",")]
    theirs = Theirs(path, args.flash)
    with open(os.path.join(args.folder, "config.json")) as file:
        vocab = json.load(file)["vocab_size"]
    for threads in map(int, args.threads.split(",")):
        theirs.run([1] * 64, threads)
        for who in ours:
            who.run(64, threads)
        for tokens in map(int, args.tokens.split(",")):
            ids = [(i * 7919 + 17) % vocab for i in range(tokens)]
            rows = [[who.run(tokens, threads) for who in ours] + [theirs.run(ids, threads)] for _ in range(args.rounds)]
            medians = [[statistics.median(row[i][what] for row in rows) for what in (0, 1)] for i in range(len(ours) + 1)]
            wall, cpu = medians[-1]
            print(f"{tokens} tokens, {threads} thread(s): llama.cpp f32 {tokens / wall:.0f} tok/s, wall {wall:.3f} s, cpu {cpu:.3f} s, "
                  f"peak {peak(os.getpid())} MB; load {os.getloadavg()[0]:.1f}")
            for who, (w, c) in zip(ours, medians):
                print(f"    {who.dtype}: {tokens / w:.0f} tok/s, wall {w:.3f} s = {wall / w:.2f}x, cpu {c:.3f} s = "
                      f"{cpu / max(c, 1e-9):.2f}x, peak {peak(who.process.pid)} MB", flush=True)
    for who in ours:
        who.close()


if __name__ == "__main__":
    main()
