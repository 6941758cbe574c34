# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""transformers' Trainer with a tiny model of random weights; all ranks must end with the same
result."""

import sys

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Sequences(torch.utils.data.Dataset):
    """Artificial sentences: tokens that count in steps of one."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = (torch.arange(16) + index) % 32
        return {"input_ids": tokens, "labels": tokens}


def main():
    set_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1,
                                       n_head=2))
    arguments = TrainingArguments(output_dir=sys.argv[1], per_device_train_batch_size=4,
                                  max_steps=int(sys.argv[2]), use_cpu=True, report_to=[],
                                  save_steps=2, disable_tqdm=True, learning_rate=1e-2)
    trainer = Trainer(model=model, args=arguments, train_dataset=Sequences(),
                      eval_dataset=Sequences())
    done = trainer.train(resume_from_checkpoint=next(iter(sys.argv[3:]), None))
    loss = trainer.evaluate()["eval_loss"]

    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, (loss, sum(p.sum().item() for p in model.parameters())))
    assert len(set(found)) == 1, f"ranks ended differently: {found}"
    assert arguments.world_size == dist.get_world_size() == len(found)
    dist.barrier()  # Else Gloo's thread, which holds tensors, may abort the end.
    print(f"OK: rank {arguments.process_index} of {arguments.world_size}, local rank "
          f"{arguments.local_process_index}, step {done.global_step}, loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
