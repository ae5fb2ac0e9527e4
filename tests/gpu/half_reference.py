#!/usr/bin/env python3
"""How far PyTorch's own half precision is from its f32, on the half-precision checkpoints of tests/fixtures/engine.

    python half_reference.py [FIXTURES]

Prints one line a checkpoint, length and way of attending: max and mean absolute difference of the values. The device
path's test (src/engine/device/tests.rs) holds itself to these numbers.
"""
import json
import os
import sys

import torch
import transformers

FOLDERS = {"qwen3-token-1-bf16": torch.bfloat16, "qwen2-token-3-f16": torch.float16}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    fixtures = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../fixtures/engine")
    for name, dtype in FOLDERS.items():
        folder = os.path.join(fixtures, name)
        with open(os.path.join(folder, "reference.json")) as file:
            reference = json.load(file)
        for attention in ("sdpa", "eager"):
            model = transformers.AutoModelForTokenClassification.from_pretrained(
                folder, dtype=dtype, attn_implementation=attention).eval()
            for ids, expected in zip(reference["inputs"], reference["values"]):
                with torch.no_grad():
                    found = model(torch.tensor([ids])).logits.flatten().double()
                difference = (found - torch.tensor(expected).double()).abs()
                print(f"{name} {attention} {len(ids)} tokens: max {difference.max():.3e} mean {difference.mean():.3e}")


main()
