# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lightning's demo model with the strategy ddp_spawn, which starts two ranks on each node itself."""

import atexit
import os
import sys

import lightning as L
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel


class Model(BoringModel):
    def on_train_end(self):
        # One write, unlike print: both ranks share one pipe.
        sys.stdout.write(f"OK: rank {self.global_rank} of {self.trainer.world_size}\n")
        atexit.register(os._exit, 0)  # torch may abort as Python ends (pytorch issue 190489).


if __name__ == "__main__":
    L.Trainer(accelerator="cpu", strategy="ddp_spawn", devices=2,
              num_nodes=int(os.environ["GROUP_WORLD_SIZE"]), max_steps=2, logger=False,
              enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False).fit(Model(), datamodule=BoringDataModule())
