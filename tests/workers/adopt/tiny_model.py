# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Makes a folder with a model of two layers, a tokenizer, texts and chats, from which programs train without
a word of ours in them: tiny_model.py FOLDER [--fail-once]. The model brings code of its own, as models
may, and that says the rank's place at its first step, and with --fail-once ends rank 1 there once.
Needs nothing but Python."""

import json
import pathlib
import struct
import sys

CODE = """
import os, signal, time
import torch
from transformers import LlamaForCausalLM


def say_once(config):
    # Some trainers call parts of a model and not the whole.
    said = []

    def say(*_):
        env, group = os.environ, torch.distributed
        if said:
            return
        said.append(True)
        print(f"rank {group.get_rank()} of {group.get_world_size()}, restart "
              f"{env['TORCHELASTIC_RESTART_COUNT']}, by "
              f"{'hlaunch' if 'HLAUNCH_JOB_ID' in env else 'torch'}", flush=True)
        if config.fails_once and env["TORCHELASTIC_RESTART_COUNT"] == "0":
            if group.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
    return say


class Tiny(LlamaForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        self.get_input_embeddings().register_forward_pre_hook(say_once(config))
"""
WORDS = ["[PAD]", "[EOS]", "[UNK]", *(f"w{number}" for number in range(61))]


def main(folder, fails_once):
    folder.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (folder / name).write_text(json.dumps(value), encoding="utf-8")
    (folder / "modeling_tiny.py").write_text(CODE, encoding="utf-8")
    write("config.json", {
        "architectures": ["Tiny"], "auto_map": {"AutoModelForCausalLM": "modeling_tiny.Tiny"},
        "model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(WORDS),
        "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
        "torch_dtype": "float32", "fails_once": fails_once})
    write("tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": number, "content": word, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for number, word in enumerate(WORDS[:3])],
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "unk_token": "[UNK]",
                  "vocab": {word: number for number, word in enumerate(WORDS)}}})
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]",
                                    "eos_token": "[EOS]", "unk_token": "[UNK]"})
    # One weight; the others are found missing, and begin as random numbers.
    name, size = "model.norm.weight", 16
    head = json.dumps({"__metadata__": {"format": "pt"}, name: {
        "dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}}).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(head)) + head + struct.pack(f"<{size}f", *[1.0] * size))
    for kind, line in (("texts", {"text": "w1 w2 w3 w4 w5 w6"}), ("chats", {"messages": [
            {"role": "user", "content": "w1 w2"}, {"role": "assistant", "content": "w3 w4"}]})):
        (folder / kind).mkdir(exist_ok=True)
        (folder / kind / "train.jsonl").write_text(64 * (json.dumps(line) + "\n"), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), "--fail-once" in sys.argv)
