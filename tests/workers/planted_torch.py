# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`planted_torch.py NAME RANK`: torch workers in real collectives; the rank fails in the way of
NAME.

The file "struck" in PLANT_FOLDER contains the time, the host and the rank of the failure.
"""

import datetime
import os
import pathlib
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ["RANK"])
BACKEND = os.environ.get("PLANT_BACKEND", "gloo")
HERE = pathlib.Path(os.environ.get("PLANT_FOLDER", "."))

PATIENT, IMPATIENT = (datetime.timedelta(seconds=float(seconds))
                      for seconds in (60, os.environ.get("PLANT_PATIENCE", 3)))
# The plants that end by a time-out.
WAITS = ("sleeps", "calls_another_collective", "misses_a_barrier", "waits_for_a_key",
         "does_not_join", "stands_still_in_its_loader", "other_size", "works_impatiently")
# Plants without a model: the ranks only call all_reduce.
PLAIN = ("calls_another_collective", "other_fingerprint", "other_size")
# Plants before the group exists; with -1 they hit all ranks.
BEFORE = ("asks_for_cuda", "asks_for_nccl", "serves_the_store_itself", "expects_too_many",
          "does_not_join", "cannot_read_its_checkpoint", "misses_its_checkpoint",
          "wants_too_much_memory")


def mark():
    """Records that the failure is about to happen."""
    text = f"{time.time()} {socket.gethostname()} {RANK}"
    (HERE / f"struck-{RANK}").write_text(text, encoding="ascii")
    (HERE / f"struck-{RANK}").rename(HERE / "struck")


def meet():
    """Waits until all ranks have imported torch, which may take one much longer than another."""
    (HERE / f"imported-{RANK}").touch()
    ranks = range(int(os.environ["WORLD_SIZE"]))
    while not all((HERE / f"imported-{rank}").exists() for rank in ranks):
        time.sleep(0.01)


class Killed(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        os.kill(os.getpid(), 9)


class Raises(Killed):
    def __getitem__(self, index):
        raise ValueError(f"bad sample {index}")


class Sleeps(Killed):
    def __getitem__(self, index):
        time.sleep(600)


def raises():
    raise ValueError("bad batch")


def leaves_early():
    sys.exit(0)


def sleeps():
    time.sleep(600)


def exits_85():
    os._exit(85)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def has_a_segmentation_fault():
    os.kill(os.getpid(), signal.SIGSEGV)


def aborts():
    os.abort()


def loader_killed():
    list(DataLoader(Killed(), num_workers=1))


def loader_raises():
    list(DataLoader(Raises(), num_workers=2))


def stands_still_in_its_loader():
    list(DataLoader(Sleeps(), num_workers=1))


def wrong_shape():
    torch.nn.Linear(4, 4)(torch.zeros(2, 5))


def wrong_dtype():
    torch.nn.Linear(4, 4)(torch.zeros(2, 4, dtype=torch.int64))


def other_state():
    torch.nn.Linear(4, 4).load_state_dict({"weight": torch.zeros(3, 3), "extra": torch.zeros(1)})


def much_to_say():
    raise ValueError("bad batch: " + "7, " * 1_700_000)


def backward_twice():
    loss = torch.ones(2, requires_grad=True).prod()
    loss.backward()
    loss.backward()


def index_out_of_range():
    torch.nn.Embedding(4, 4)(torch.tensor([7]))


def calls_another_collective():
    dist.recv(torch.zeros(1), src=1 - min(RANK, 1))


def misses_a_barrier():
    time.sleep(600)


def waits_for_a_key():
    dist.distributed_c10d._get_default_store().wait(["never"], IMPATIENT)


def other_fingerprint():
    dist.broadcast(torch.ones(4), src=0)


def other_size():
    dist.all_reduce(torch.ones(400))


def asks_for_cuda():
    torch.zeros(1).cuda()


def asks_for_nccl():
    dist.init_process_group("nccl")


def serves_the_store_itself():
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
    dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 1, True)


def expects_too_many():
    dist.init_process_group(BACKEND, world_size=int(os.environ["WORLD_SIZE"]) + 1, rank=RANK,
                            init_method="env://", timeout=IMPATIENT)
    dist.barrier()  # A back end may let its ranks meet only now.


def does_not_join():
    time.sleep(600)


def misses_its_checkpoint():
    torch.load("checkpoint.pt")


def cannot_read_its_checkpoint():
    path = pathlib.Path(os.environ["PLANT_FOLDER"]) / "half.pt"
    path.write_bytes(b"PK\x03\x04 half of it")
    torch.load(path)


def wants_too_much_memory():
    torch.empty(1 << 50)


def stands():
    """Waits for its end, while the others go on."""
    print("stands", flush=True)
    signal.pause()


def works():
    print("stands", flush=True)


def works_impatiently():
    pass


def train(name, rank):
    if name in WAITS:
        meet()
    if name in BEFORE and rank in (RANK, -1):
        mark()
        globals()[name]()
    dist.init_process_group(BACKEND, timeout=IMPATIENT if name in WAITS else PATIENT)
    if name not in PLAIN:
        width = 256 if name == "works_impatiently" else 4  # More than one packet.
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, width))
    for step in range(100_000):
        if step == 3 and RANK == rank:
            if name not in ("stands", "works"):
                mark()
            globals()[name]()
        if name in PLAIN:
            dist.all_reduce(torch.ones(4))
        elif name == "misses_a_barrier":
            dist.monitored_barrier(timeout=IMPATIENT)
        else:
            model(torch.ones(2, 4)).sum().backward()
        time.sleep(0.005)


@record
def recorded(name, rank):
    train(name, rank)


if __name__ == "__main__":
    torch.set_num_threads(1)
    (recorded if "--record" in sys.argv else train)(sys.argv[1], int(sys.argv[2]))
