#!/usr/bin/env python3
"""A critic's model folder as a GGUF file that trajscope opens, with its reward head beside it.

    pip install gguf safetensors torch
    python to_gguf.py CHECKPOINT OUT_FOLDER [q8_0|bf16|f16|f32]

llama.cpp's own converter stops at the `score` tensors of reward heads. This writes OUT_FOLDER/NAME-TYPE.gguf, under
llama.cpp's names, and OUT_FOLDER/score.safetensors, one tensor in memory at a time. `llama-quantize NAME-bf16.gguf
NAME-Q4_K_M.gguf Q4_K_M` makes smaller ones of it; the head stays exact because it is not in the file. Qwen2 and Qwen3.
"""
import json
import os
import sys

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as T
from safetensors import safe_open
from safetensors.torch import save_file


def add_metadata(writer, arch, config):
    """What trajscope and llama.cpp want to know, from the keys of a config.json."""
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    rope = {**config, **(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads", heads))
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind not in ("default", "linear", "yarn"):
        sys.exit(f"rope scaling {kind!r} is not known here")
    if kind != "default":
        writer.add_rope_scaling_type(getattr(gguf.RopeScalingType, kind.upper()))
        writer.add_rope_scaling_factor(rope["factor"])
        if "original_max_position_embeddings" in rope:
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if arch == "qwen2" and config.get("use_sliding_window"):
        sys.exit("sliding attention cannot be said in a GGUF file of this architecture")
    names = {int(number): name for number, name in (config.get("id2label") or {}).items()}
    if names:
        writer.add_classifier_output_labels([names[i] for i in range(len(names))])


def add_tokenizer(writer, file, rows):
    """The tokens of a tokenizer.json; rows of the embedding that it has no token for are unused."""
    with open(file, encoding="utf-8") as stream:
        parsed = json.load(stream)
    tokens, kinds = [f"[PAD{i}]" for i in range(rows)], [gguf.TokenType.UNUSED] * rows
    for token, i in parsed["model"]["vocab"].items():
        tokens[i], kinds[i] = token, gguf.TokenType.NORMAL
    for added in parsed["added_tokens"]:
        kind = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
        tokens[added["id"]], kinds[added["id"]] = added["content"], kind
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in parsed["model"]["merges"]])


def gguf_name(names, name):
    found = names.get_name(name if name.startswith(("model.", "lm_head.")) else "model." + name,
                           try_suffixes=(".weight", ".bias"))
    return found or sys.exit(f"tensor {name}: no name for it in GGUF files")


def type_of(shape, kind):
    """Vectors stay f32; rows that are no whole number of blocks become F16."""
    if len(shape) == 1:
        return T.F32
    return T.F16 if shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] else kind


def encoded(tensor, kind):
    """A tensor's numbers as they lie in the file."""
    data = tensor.detach().float().numpy()
    if kind == T.F32:
        return data
    return data.astype(numpy.float16) if kind == T.F16 else gguf.quants.quantize(data, kind)


def convert(checkpoint, out, kind):
    with open(os.path.join(checkpoint, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    arch = config["model_type"]
    if arch not in ("qwen2", "qwen3"):
        sys.exit(f"model_type {arch!r}: only qwen2 and qwen3")
    files = [safe_open(os.path.join(checkpoint, f), "pt") for f in sorted(os.listdir(checkpoint)) if f.endswith(".safetensors")]
    where = {name: file for file in files for name in file.keys()}
    head = {name: where.pop(name).get_tensor(name).contiguous() for name in list(where) if name.startswith("score.")}
    os.makedirs(out, exist_ok=True)
    name = os.path.basename(os.path.normpath(checkpoint))
    path = os.path.join(out, f"{name}-{kind.name.lower()}.gguf")
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(name)
    add_metadata(writer, arch, config)
    tokenizer = os.path.join(checkpoint, "tokenizer.json")
    if os.path.isfile(tokenizer):
        add_tokenizer(writer, tokenizer, config["vocab_size"])
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper()), config["num_hidden_layers"])
    kinds = {name: type_of(file.get_slice(name).get_shape(), kind) for name, file in where.items()}
    for name, file in where.items():
        shape = tuple(file.get_slice(name).get_shape())
        per, size = gguf.GGML_QUANT_SIZES[kinds[name]]
        bytes_ = int(numpy.prod(shape)) // per * size
        if kinds[name] in (T.F32, T.F16):
            dtype = numpy.float32 if kinds[name] == T.F32 else numpy.float16
            writer.add_tensor_info(gguf_name(names, name), shape, numpy.dtype(dtype), bytes_)
        else:
            in_bytes = gguf.quant_shape_to_byte_shape(shape, kinds[name])
            writer.add_tensor_info(gguf_name(names, name), in_bytes, numpy.dtype(numpy.uint8), bytes_, kinds[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, file in where.items():
        writer.write_tensor_data(encoded(file.get_tensor(name), kinds[name]))
    writer.close()
    if head:
        save_file({k: v.to(torch.float32) for k, v in head.items()}, os.path.join(out, "score.safetensors"))
    print(path, os.path.getsize(path), "bytes;", "head:", ", ".join(head) or "none")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    convert(sys.argv[1], sys.argv[2], T[(sys.argv[3] if len(sys.argv) > 3 else "q8_0").upper()])
