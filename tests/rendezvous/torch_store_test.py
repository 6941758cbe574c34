# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs this interpreter's PyTorch TCPStore client against hlaunch's own server.

torch_store_test.py SERVER, where SERVER is the program c10d_server_main. Exits with 77 if this
interpreter has no torch.distributed.
"""

import datetime
import os
import subprocess
import sys
import threading
import unittest

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    print(f"skipped: {sys.executable} has no torch: {error}")
    sys.exit(77)

SHORT = datetime.timedelta(milliseconds=300)
TIMEOUT = datetime.timedelta(seconds=30)
SERVER = None  # Path of c10d_server_main.


class Server:
    """One running server. Use it as a context manager."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def reset(self):
        self.process.stdin.write("reset\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "reset\n"

    def client(self, wait_for_workers=True):
        return dist.TCPStore("127.0.0.1", self.port, 2, False, TIMEOUT, wait_for_workers)


def needs(method):
    """Skips a test if this torch's client lacks `method`."""
    missing = not hasattr(dist.TCPStore, method)
    return unittest.skipIf(missing, f"torch {torch.__version__} has no {method}")


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContextOf(Server())
        self.store = self.server.client()

    def enterContextOf(self, manager):
        self.addCleanup(manager.__exit__, None, None, None)
        return manager.__enter__()

    def test_set_get(self):
        self.store.set("k", "one")
        self.store.set("k", "two")
        self.assertEqual(self.store.get("k"), b"two")
        self.store.set("empty", "")
        self.assertEqual(self.store.get("empty"), b"")

    def test_large_value(self):
        value = "x" * (8 << 20)
        self.store.set("k", value)
        self.assertEqual(len(self.store.get("k")), len(value))

    def test_add(self):
        self.assertEqual(self.store.add("n", 5), 5)
        self.assertEqual(self.store.add("n", -7), -2)
        self.assertEqual(self.store.get("n"), b"-2")
        self.store.set("n", "40")
        self.assertEqual(self.store.add("n", 2), 42)

    def test_compare_set(self):
        self.assertEqual(self.store.compare_set("k", "", "a"), b"a")
        self.assertEqual(self.store.compare_set("k", "b", "c"), b"a")
        self.assertEqual(self.store.compare_set("k", "a", "b"), b"b")

    def test_delete_and_num_keys(self):
        before = self.store.num_keys()  # Counts torch's own init/.
        self.store.set("k", "v")
        self.assertEqual(self.store.num_keys(), before + 1)
        self.assertTrue(self.store.delete_key("k"))
        self.assertFalse(self.store.delete_key("k"))
        self.assertEqual(self.store.num_keys(), before)

    def test_delete_as_the_first_request(self):
        store = self.server.client(wait_for_workers=False)
        self.assertFalse(store.delete_key("k"))

    def test_wait_across_clients(self):
        other = self.server.client()
        setter = threading.Thread(target=lambda: (other.set("a", "1"), other.set("b", "2")))
        setter.start()
        self.store.wait(["a", "b"], TIMEOUT)
        setter.join()
        self.assertEqual(self.store.get("b"), b"2")

    def test_wait_that_times_out_leaves_a_usable_client(self):
        with self.assertRaises(RuntimeError):
            self.store.wait(["late"], SHORT)
        # A client before 2.1 does not tell the server that it gave up; the server learns it from
        # the next request.
        self.assertEqual(self.store.add("n", 1), 1)
        self.server.client().set("late", "v")
        for i in range(3):
            self.assertEqual(self.store.add("n", 1), i + 2)
        self.assertEqual(self.store.get("late"), b"v")

    def test_prefix_store(self):
        inner = dist.PrefixStore("a", dist.PrefixStore("b", self.store))
        inner.set("k", "v")
        self.assertEqual(self.store.get("b/a/k"), b"v")

    def test_reset_gives_the_next_client_an_empty_store(self):
        self.store.set("k", "v")
        self.assertEqual(self.store.get("k"), b"v")
        self.server.reset()
        self.assertEqual(self.server.client(wait_for_workers=False).num_keys(), 0)
        with self.assertRaises(RuntimeError):
            self.store.get("k")

    @needs("check")
    def test_check(self):
        self.store.set("k", "v")
        self.assertTrue(self.store.check(["k"]))
        self.assertFalse(self.store.check(["k", "absent"]))

    @needs("append")
    def test_append(self):
        self.store.append("k", "ab")
        self.store.append("k", "cd")
        self.assertEqual(self.store.get("k"), b"abcd")

    @needs("multi_get")
    def test_multi(self):
        self.store.multi_set(["a", "b"], ["1", "2"])
        self.assertEqual(self.store.multi_get(["b", "a"]), [b"2", b"1"])

    @needs("queue_push")
    def test_queues(self):
        other = self.server.client()
        pusher = threading.Thread(target=lambda: other.queue_push("q", "1"))
        pusher.start()
        self.assertEqual(self.store.queue_pop("q"), b"1")
        pusher.join()
        self.store.queue_push("q", "2")
        self.store.queue_push("q", "3")
        self.assertEqual(self.store.queue_len("q"), 2)
        self.assertEqual(self.store.queue_pop("q"), b"2")
        self.assertEqual(self.store.queue_pop("q"), b"3")
        with self.assertRaises(RuntimeError):
            self.store.queue_pop("q", False)

    @needs("list_keys")
    def test_list_keys(self):
        self.store.set("a", "1")
        self.store.set("b", "2")
        self.assertEqual(sorted(self.store.list_keys()), ["a", "b"])

    @needs("barrier")
    def test_barrier(self):
        with self.assertRaises(RuntimeError):
            self.store.barrier("alone", 2, SHORT)
        other = self.server.client()
        second = threading.Thread(target=lambda: other.barrier("both", 2, TIMEOUT))
        second.start()
        self.store.barrier("both", 2, TIMEOUT)
        second.join()

    @needs("clone")
    def test_clone(self):
        self.store.set("k", "v")
        self.assertEqual(self.store.clone().get("k"), b"v")


class TrainingTest(unittest.TestCase):
    def test_two_ranks_train_with_ddp(self):
        with Server() as server:
            for restart in range(2):  # The second round of a job finds an empty store.
                workers = [self.start(server.port, rank, restart) for rank in range(2)]
                outputs = [worker.communicate(timeout=800)[0] for worker in workers]
                for worker, output in zip(workers, outputs):
                    self.assertEqual(worker.returncode, 0, output)
                    self.assertIn("sum 3.0 loss", output)
                server.reset()

    def start(self, port, rank, restart):
        env = dict(
            os.environ,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE="2",
            LOCAL_WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            OMP_NUM_THREADS="1",
            TORCHELASTIC_RUN_ID="test",
            TORCHELASTIC_RESTART_COUNT=str(restart),
            TORCHELASTIC_USE_AGENT_STORE="True",
        )
        return subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def worker():
    dist.init_process_group("gloo", timeout=TIMEOUT)
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    torch.manual_seed(dist.get_rank())  # DDP must make the ranks' weights equal.
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.ones(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    dist.barrier()
    print(f"sum {total.item()} loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()
    os._exit(0)  # torch may abort as Python ends (pytorch issue 190489).


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        SERVER = sys.argv.pop(1)
        print(f"torch {torch.__version__} at {sys.executable}", flush=True)
        unittest.main()
