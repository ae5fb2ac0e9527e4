"""Rewards by PyTorch for rendered texts: the reference of tests/critic_mini.rs, and the check of an exported folder.

python reference.py CRITIC_FOLDER TEXT_FILE...   prints one JSON object a file: rewards at every <|im_end|>.
"""
import json, sys

import torch
from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast

folder = sys.argv[1]
torch.set_num_threads(1)
model = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).eval()
tokenizer = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
end = tokenizer.convert_tokens_to_ids("<|im_end|>")
for path in sys.argv[2:]:
    with open(path) as f:
        ids = torch.tensor([tokenizer.encode(f.read(), add_special_tokens=False)])
    with torch.no_grad():
        values = model(input_ids=ids).logits[0, :, 0]
    at = (ids[0] == end).nonzero()[:, 0]
    print(json.dumps({"tokens": ids.shape[1], "rewards": [round(float(values[i]), 6) for i in at]}))
