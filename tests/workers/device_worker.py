#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank whose collectives a device does, as with NCCL: a call returns at once, and the device does
it later, once it has done those before and all ranks have called the same. There is no GPU and no
torch here: it plays torch's control server, with the record that torch 2.13 writes for NCCL.
Ranks meet in the current directory."""

import collections
import faulthandler
import http.server
import json
import os
import pathlib
import socketserver
import sys
import tempfile
import threading
import time

MODE = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = RANK == SIZE - 1
GROUPS = {"0": "default_pg", "1": "dp", "2": "tp"}
MEMBERS = {name: list(range(SIZE)) for name in GROUPS}
if MODE == "part":  # The last rank has a group of its own.
    MEMBERS |= {"1": list(range(SIZE - 1)), "2": [SIZE - 1]}
ROUND = f"round{os.environ['TORCHELASTIC_RESTART_COUNT']}"

entries, lock = [], threading.Lock()
numbers = collections.Counter()


def entry(name, group, **fields):
    one = {"record_id": len(entries), "process_group": [group, GROUPS[group]],
           "profiling_name": f"nccl:{name}", "collective_seq_id": numbers[group],
           "p2p_seq_id": numbers["p2p"], "input_sizes": [[4]], "input_dtypes": ["Float"],
           "is_p2p": False, "state": "scheduled", "retired": False, **fields}
    entries.append(one)
    return one


def call(name, group="0"):
    with lock:
        numbers[group] += 1
        entry(name, group)


def exchange():
    """Torch's batch_isend_irecv: the calls of the block never change again, only the block does."""
    with lock:
        numbers["p2p"] += 1
        entry(f"send {RANK}->{(RANK + 1) % SIZE}", "0", is_p2p=True, done=True)
        entry(f"recv {RANK}<-{(RANK - 1) % SIZE}", "0", is_p2p=True, done=True)
        entry("coalesced", "0", is_p2p=True)


def message(verb, peer):
    with lock:
        numbers["p2p"] += 1
        entry(f"{verb} {RANK}{'->' if verb == 'send' else '<-'}{peer}", "0", is_p2p=True, peer=peer)


def has_opposite(one):
    """Each rank sends at most one message to another."""
    verb = one["profiling_name"].partition(":")[2].split()[0]
    opposite = "recv" if verb == "send" else "send"
    pathlib.Path(f"{ROUND}.{verb}.{RANK}.{one['peer']}").touch()
    return pathlib.Path(f"{ROUND}.{opposite}.{one['peer']}.{RANK}").exists()


def has_all(one):
    if "peer" in one:
        return has_opposite(one)
    group, number = one["process_group"][0], one["p2p_seq_id" if one["is_p2p"] else
                                                 "collective_seq_id"]
    name = f"{ROUND}.{group}.{one['is_p2p']}.{number}.{one['profiling_name']}"
    pathlib.Path(f"{name}.{RANK}").touch()
    return all(pathlib.Path(f"{name}.{rank}").exists() for rank in MEMBERS[group])


def stream(group):
    """Each group has a stream of its own."""
    at = 0
    while True:
        time.sleep(0.02)
        with lock:
            mine = [one for one in entries if one["process_group"][0] == group
                    and "done" not in one]
        for one in mine[at:]:
            stuck = MODE == "device" and LAST and one["collective_seq_id"] == 4
            if not has_all(one) or stuck:
                break
            with lock:
                one.update(state="completed", retired=True)
            at += 1


def synchronize():
    """Spins, as CUDA does, and in this frame alone: it is where the rank is said to stand."""
    over = False
    while not over:
        over = True
        with lock:
            for one in entries:
                over = over and (one["retired"] or "done" in one)


def stacks():
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().replace("Current thread", "Thread")  # Torch's own asker is no Python thread.


def record():
    with lock:
        return json.dumps({
            "version": "2.10", "entries": entries, "nccl_comm_state": {},
            "pg_config": {name: {"name": name, "desc": GROUPS[name],
                                 "ranks": str(MEMBERS[name])} for name in GROUPS},
            "pg_status": {name: {"last_enqueued_collective": numbers[name]} for name in GROUPS}})


EMPTY = '{"comm_lib_version":"","nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.10"}'
HANDLERS = {"fr_trace_json": lambda: EMPTY, "dump_nccl_trace_json": record,
            "wait_counter_values": lambda: "{}", "dump_traceback": stacks,
            "hlaunch_groups": lambda: json.dumps(MEMBERS)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        listed = self.path == "/handler/"
        self.answer(200 if listed else 404, json.dumps(sorted(HANDLERS)) if listed else "")

    def do_POST(self):
        handler = HANDLERS.get(self.path.rpartition("/")[2])
        self.answer(200 if handler else 404, handler() if handler else "")

    def log_message(self, *words):
        pass

    def address_string(self):
        return ""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def idle_rank():
    time.sleep(600)


def steps(count, group="0"):
    for _ in range(count):
        call("all_reduce", group)


def main():
    server = Server(os.path.join(os.environ["HLAUNCH_TAP"], f"{RANK}.{os.getpid()}"), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for group in GROUPS:
        threading.Thread(target=stream, args=(group,), daemon=True).start()
    steps(3)
    synchronize()
    if MODE == "sleep":
        if LAST:
            idle_rank()
        steps(30)  # The others run ahead.
    elif MODE == "op":
        call("broadcast" if LAST else "all_reduce")
        steps(5)
    elif MODE == "crossed":
        steps(1, "1" if LAST else "2")
        synchronize()
        steps(1, "2" if LAST else "1")
    elif MODE == "elsewhere":
        # The last rank has given its device a call of tp, and does not come to dp.
        if LAST:
            call("all_reduce", "2")
            idle_rank()
        call("all_reduce", "1")
        synchronize()
        call("all_reduce", "2")
    elif MODE == "device":
        steps(5)
    elif MODE == "receive":
        if LAST:
            idle_rank()
        message("recv", SIZE - 1)
    elif MODE == "part":
        while LAST:
            call("all_reduce", "2")
            time.sleep(0.1)
        if RANK == 1:
            idle_rank()
        call("all_reduce", "1")
    elif MODE == "exchanges":
        for _ in range(3):
            exchange()
            synchronize()
            time.sleep(5)
    synchronize()


main()
