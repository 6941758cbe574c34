# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A stand-in for a device that does a rank's collectives, as with NCCL: a call returns at once, and
the device does it later, once it has done those before and all ranks have called the same. There is
no GPU and no torch here: it plays torch's control server, with the record that torch 2.13 and 2.14
write for NCCL, or, with DEVICE_RECORD=nccl2, that of torch 2.15. Ranks meet in the current
directory."""

import collections
import faulthandler
import http.server
import json
import os
import pathlib
import socketserver
import tempfile
import threading
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ROUND = f"round{os.environ['TORCHELASTIC_RESTART_COUNT']}"
RECORD = os.environ.get("DEVICE_RECORD", "nccl")

GROUPS = {"0": "default_pg", "1": "dp", "2": "tp"}  # By torch's names: what people call them.
MEMBERS = {name: list(range(SIZE)) for name in GROUPS}


class How:
    """What a program may change before it calls anything, or later."""
    stuck = set()     # Numbers of collectives that this rank's device never ends.
    pace = 0.0        # Seconds that the device needs for each call.
    silent = 0.0      # Seconds after which the recorder answers.
    in_store = False  # The rank waits for the master store.
    kept = 2000       # Entries that a recorder keeps.


class Recorder:
    """What the rank has called by one backend. In an entry, fields that begin with _ are the
    device's own."""

    def __init__(self, backend):
        self.backend, self.entries, self.lock = backend, [], threading.Lock()
        self.numbers, self.ended = collections.Counter(), collections.Counter()

    def add(self, name, group, **fields):
        one = {"record_id": len(self.entries), "op_id": len(self.entries),
               "process_group": [group, GROUPS[group]],
               "profiling_name": f"{self.backend}:{name}", "pg_id": 0,
               "collective_seq_id": self.numbers[group], "p2p_seq_id": self.numbers["p2p"],
               "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]],
               "output_dtypes": ["Float"], "is_p2p": False, "state": "scheduled",
               "retired": False, "time_created_ns": time.time_ns(), "timeout_ms": 600000, **fields}
        self.entries.append(one)
        return one

    def end(self, one):
        with self.lock:
            one["retired"] = True
            if self.backend != "gloo":
                one["state"] = "completed"
            self.ended[one["process_group"][0]] += 1

    def json(self):
        with self.lock:
            entries = [{key: value for key, value in one.items() if key[0] != "_"}
                       for one in self.entries[-How.kept:]]
            numbers, ended = dict(self.numbers), dict(self.ended)
        own = self.backend != "gloo"  # Gloo's recorder knows no members.
        used = sorted({one["process_group"][0] for one in entries})
        return json.dumps({
            "version": "2.10", **({"entries": entries} if entries else {}), "nccl_comm_state": {},
            "pg_config": {name: {"name": name, "desc": GROUPS[name], "ranks": str(MEMBERS[name])}
                          for name in used if own},
            "pg_status": {name: {"last_enqueued_collective": numbers.get(name, 0),
                                 "last_started_collective": -1,
                                 "last_completed_collective": ended.get(name, 0)}
                          for name in used}})


device, gloo = Recorder(RECORD), Recorder("gloo")


def call(name, group="0", recorder=device, size=4):
    if name == "barrier" and recorder is device and RECORD == "nccl":
        name = "all_reduce_barrier"
    with recorder.lock:
        recorder.numbers[group] += 1
        return recorder.add(name, group, input_sizes=[[size]])


def call_block(names, group="0"):
    """Torch's _coalescing_manager."""
    with device.lock:
        device.numbers[group] += 1
        for name in names:
            device.add(name, group, _done=True)
        device.add("coalesced", group)


def exchange(peers=None, group="0"):
    """Torch's batch_isend_irecv: the calls of the block never change again, only the block does.
    `peers` are pairs of a verb and a rank; without them all ranks pass on to the next one."""
    default = [("send", (RANK + 1) % SIZE), ("recv", (RANK - 1) % SIZE)]
    with device.lock:
        device.numbers["p2p"] += 1
        sent = [_message(verb, peer, group) for verb, peer in peers or default]
        for verb, peer, _ in sent:
            device.add(_arrow(verb, peer), group, is_p2p=True, _done=True)
        device.add("coalesced", group, is_p2p=True, _messages=sent)


def message(verb, peer, group="0"):
    with device.lock:
        device.numbers["p2p"] += 1
        device.add(_arrow(verb, peer), group, is_p2p=True,
                   _messages=[_message(verb, peer, group)])


def _arrow(verb, peer):
    return f"{verb} {RANK}{'->' if verb == 'send' else '<-'}{peer}"


def _message(verb, peer, group):
    device.numbers[group, verb, peer] += 1
    return verb, peer, device.numbers[group, verb, peer]


def _has_opposite(group, verb, peer, number):
    opposite = "recv" if verb == "send" else "send"
    pathlib.Path(f"{ROUND}.{verb}.{group}.{RANK}.{peer}.{number}").touch()
    return pathlib.Path(f"{ROUND}.{opposite}.{group}.{peer}.{RANK}.{number}").exists()


def _has_all(one):
    group = one["process_group"][0]
    if "_messages" in one:
        return all([_has_opposite(group, *each) for each in one["_messages"]])
    name = (f"{ROUND}.{group}.{one['collective_seq_id']}.{one['profiling_name']}"
            f".{one['input_sizes'][0][0]}")
    pathlib.Path(f"{name}.{RANK}").touch()
    return all(pathlib.Path(f"{name}.{rank}").exists() for rank in MEMBERS[group])


def _stream(group):
    """Each group has a stream of its own."""
    at = 0
    while True:
        time.sleep(0.02)
        with device.lock:
            mine = [one for one in device.entries[at:] if one["process_group"][0] == group
                    and "_done" not in one and not one["retired"]]
        for one in mine:
            if not _has_all(one) or (not one["is_p2p"] and one["collective_seq_id"] in How.stuck):
                break
            time.sleep(How.pace)
            device.end(one)
            at = one["record_id"] + 1


def wait_in_gloo(name, group="0"):
    """With gloo a rank waits in the call itself."""
    one = call(name, group, recorder=gloo)
    while not _has_all(one):
        time.sleep(0.02)
    gloo.end(one)


def synchronize(pause=0):
    """Spins, as CUDA does, and in this frame alone: it is where the rank is said to stand."""
    over = False
    while not over:
        time.sleep(pause)
        over = True
        with device.lock:
            for one in device.entries:
                over = over and (one["retired"] or "_done" in one)


def _stacks():
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        # Torch's own asker is no Python thread.
        return file.read().replace("Current thread", "Thread")


def _late(recorder):
    time.sleep(How.silent)
    return recorder.json()


EMPTY = json.dumps({"comm_lib_version": "", "nccl_comm_state": {}, "pg_config": {},
                    "pg_status": {}, "version": "2.10"})
HANDLERS = {
    "fr_trace_json": lambda: _late(gloo) if gloo.entries else EMPTY,
    "dump_nccl_trace_json": (lambda: _late(device)) if RECORD == "nccl" else lambda: EMPTY,
    "wait_counter_values": lambda: json.dumps(
        {"pytorch.wait_counter.TCPStore__wait": {"active_count": int(How.in_store)}}),
    "dump_traceback": _stacks,
    "hlaunch_groups": lambda: json.dumps({name: {"ranks": MEMBERS[name], "desc": GROUPS[name]}
                                          for name in GROUPS})}
if RECORD == "nccl2":
    HANDLERS |= {"c10d_health_check": lambda: "{}", "fr_dump_file": lambda: "",
                 "fr_trace_json?backend=nccl2": lambda: _late(device),
                 "fr_trace_json?backend=nccl-lazy": lambda: EMPTY}


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
        names = sorted(name for name in HANDLERS if "?" not in name)
        self.answer(200 if listed else 404, json.dumps(names) if listed else "")

    def do_POST(self):
        name, _, words = self.path.rpartition("/")[2].partition("?")
        words = [word for word in words.split("&") if word]
        brief = "includecollectives=false" in words
        rest = "&".join(word for word in words if word != "includecollectives=false")
        handler = HANDLERS.get(f"{name}?{rest}" if rest else name)
        answer = handler() if handler else ""
        if brief and "entries" in answer:
            answer = json.dumps({key: value for key, value in json.loads(answer).items()
                                 if key != "entries"})
        self.answer(200 if handler else 404, answer)

    def log_message(self, *words):
        pass

    def address_string(self):
        return ""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def start():
    """Opens the control server, and starts the device. Requires: the groups are known."""
    server = Server(os.path.join(os.environ["HLAUNCH_TAP"], f"{RANK}.{os.getpid()}"), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for group in GROUPS:
        threading.Thread(target=_stream, args=(group,), daemon=True).start()
