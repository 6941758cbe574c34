# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`planted_torch.py NAME RANK`: torch workers in real collectives, of which one fails that way."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ["RANK"])


class KillsItsLoader(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        os.kill(os.getpid(), 9)


def raises():
    raise ValueError("bad batch")


def leaves_early():
    sys.exit(0)


def sleeps():
    time.sleep(600)


def exits_85():
    os._exit(85)


def loader_killed():
    list(DataLoader(KillsItsLoader(), num_workers=1))


def wrong_shape():
    torch.nn.Linear(4, 4)(torch.zeros(2, 5))


def train(name, rank):
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3 if name == "sleeps" else 60))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for step in range(1000):
        if step == 3 and RANK == rank:
            globals()[name]()
        model(torch.ones(2, 4)).sum().backward()
        time.sleep(0.005)


@record
def recorded(name, rank):
    train(name, rank)


if __name__ == "__main__":
    torch.set_num_threads(1)
    (recorded if "--record" in sys.argv else train)(sys.argv[1], int(sys.argv[2]))
