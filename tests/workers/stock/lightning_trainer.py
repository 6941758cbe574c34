# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lightning's Trainer with its demo model on `WORLD_SIZE` CPU workers; all must get the same
result."""

import os

import lightning as L
import torch
import torchmetrics
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel


class Model(BoringModel):
    """The demo model, which also logs the number of samples on all ranks, and their mean loss."""

    def __init__(self):
        super().__init__()
        self.seen = torchmetrics.SumMetric()

    def validation_step(self, batch, batch_idx):
        found = super().validation_step(batch, batch_idx)
        self.seen.update(len(batch))
        self.log("seen", self.seen)
        self.log("val_loss", found["x"], sync_dist=True)
        return found


def main():
    trainer = L.Trainer(accelerator="cpu", strategy="ddp",
                        num_nodes=int(os.environ["GROUP_WORLD_SIZE"]),
                        devices=int(os.environ["LOCAL_WORLD_SIZE"]), max_epochs=1,
                        limit_train_batches=4, enable_progress_bar=False,
                        enable_model_summary=False, logger=False,
                        default_root_dir=os.environ.get("TMPDIR", "."))
    torch.manual_seed(trainer.global_rank)  # Ranks differ; DDP sends rank 0's parameters to all.
    model = Model()
    trainer.fit(model, datamodule=BoringDataModule())

    weights = trainer.strategy.all_gather(model.layer.weight.detach())
    assert all(torch.equal(weights[0], other) for other in weights), "ranks hold other parameters"
    losses = trainer.strategy.all_gather(trainer.callback_metrics["val_loss"])
    assert losses.unique().numel() == 1, f"ranks logged other losses: {losses}"
    assert int(trainer.callback_metrics["seen"]) == 64, "not every sample was seen once"
    trainer.strategy.barrier()
    print(f"OK: rank {trainer.global_rank} of {trainer.world_size}, node {trainer.node_rank}, "
          f"{type(trainer.strategy.cluster_environment).__name__}", flush=True)
    os._exit(0)  # As the manual says: gloo's threads may still hold tensors, and abort the end.


if __name__ == "__main__":
    main()
