#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Every door of a job, and what another user of the same hosts gets there.

The test finds the doors by itself: all sockets at which a process of the job waits for others, as the
kernel lists them. A door that DOORS does not name fails the test: whoever adds one says here what
another user gets at it.
"""

import json
import os
import pathlib
import re
import sys

import jobs
import lab

OWNER, OTHER = 1001, 65534
RENDEZVOUS, METRICS, PAGE = 29400, 9400, 9401
# A rank with hlaunch's collectives and heartbeats, which would also be served MPI's start.
WORKER = """
import array, json, os, sys, time
import hlaunch
hlaunch.init_process_group()
hlaunch.heartbeat()
hlaunch.all_reduce(array.array("q", [1]))
print("FACTS " + json.dumps(dict(os.environ)), flush=True)
ends = array.array("q", [0])
while ends[0] == 0:  # A rank hears who comes to it while it works.
    hlaunch.heartbeat()
    ends = array.array("q", [os.path.exists(sys.argv[1])])
    hlaunch.all_reduce(ends)
    time.sleep(0.02)
hlaunch.destroy_process_group()
"""
# Knocks at each door and prints what it hears there.
KNOCK = r"""
import json, socket, sys
def knock(family, kind, address, port, words, patience):
    with socket.socket(getattr(socket, family), getattr(socket, kind)) as one:
        one.settimeout(patience)
        try:
            one.connect((address, port) if port else address)
            one.sendall(bytes.fromhex(words))
            if kind == "SOCK_DGRAM":
                return "taken"
            heard = one.recv(4096)
        except OSError as error:
            return "nothing: " + type(error).__name__
    return "heard " + repr(heard.decode(errors="replace")) if heard else "nothing: closed"
for line in sys.stdin:
    door = json.loads(line)
    print(json.dumps([door["door"], knock(*door["at"])]), flush=True)
"""
HTTP = b"GET %s HTTP/1.1\r\nHost: node0\r\nConnection: close\r\n\r\n"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# torch 2.2's client: VALIDATE and its number.
STORE = b"\0" + bytes.fromhex("cef7853c")
# Seconds to wait for an answer, where none may come; elsewhere 200.
PATIENCE = {"agent": 5, "check": 5, "check's memory": 5}
NOTHING = "nothing: (closed|ConnectionResetError|BrokenPipeError|ConnectionRefusedError|PermissionError)$"
# One byte: of which group or secret it is not. Ranks of other hosts come there, whose users no kernel
# tells.
REFUSAL = r"heard '\\x0[1-6]'$"
# What another user of the host says at each door, and what the door answers.
DOORS = {
    "rendezvous": (HTTP2, "heard .HTTP/1.1 401 .*demands a token"),
    # The voter of the job's record, and a port that is kept for the next round's store, where nobody
    # is heard yet. From outside they differ in nothing else.
    "agent": (HTTP2, "heard .HTTP/1.1 401 .*demands a token|nothing: TimeoutError$"),
    "store": (STORE, NOTHING),
    "metrics": (HTTP % b"/metrics", "heard .HTTP/1.1 200 .*hlaunch_up 1"),
    "page": (HTTP % b"/", "heard .HTTP/1.1 401 .*password"),
    "PMI": (b"cmd=initack pmiid=1\n", NOTHING),
    "PMIx": (b"\0" * 64, NOTHING),
    "rank": (b"hlc3" + bytes(108), REFUSAL),
    "rank's memory": (b"hlc3" + bytes(108), NOTHING),
    # The hosts' check of the paths between them, which hears others only now and then.
    "check": (b"hlc3" + bytes(108), f"{REFUSAL}|{NOTHING}|nothing: TimeoutError$"),
    "check's memory": (b"hlc3" + bytes(108), f"{NOTHING}|nothing: TimeoutError$"),
    "heartbeats": (b"beat", "taken$"),  # And dropped: see heartbeat_test.
    "claim": (b"", "taken$"),  # Nobody reads it: its name says that the node has this agent.
    "commands": (b"status\n", NOTHING),
    "greeting": (HTTP2, NOTHING),
}


def sockets_of(pid):
    """The inodes of a process' sockets."""
    found = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(entry)))
        except FileNotFoundError:  # It was closed meanwhile.
            pass
    return found


def address_of(words):
    """The address and port in a line of /proc/net/tcp."""
    text, port = words.rsplit(":", 1)
    raw = bytes.fromhex(text)
    raw = b"".join(raw[i:i + 4][::-1] for i in range(0, len(raw), 4))
    local = raw in (bytes([127, 0, 0, 1]), bytes(15) + b"\1", bytes(10) + b"\xff\xff\x7f\0\0\1")
    return local, int(port, 16)


def doors_of(pid):
    """Where a process waits for others: ("tcp" or "udp", whether only on loopback, port), or
    ("stream", "datagram" or "packets", name)."""
    own = sockets_of(pid)
    for kind, waits in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in pathlib.Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == waits and words[9] in own:
                yield (kind[:3], *address_of(words[1]))
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        listens = int(words[3], 16) & 0x10000
        kind = {1: "stream", 2: "datagram", 5: "packets"}[int(words[4], 16)]
        if words[6] in own and len(words) > 7 and (listens or kind == "datagram"):
            yield (kind, words[7])


class Doors(jobs.JobTest):
    """A job of one user on two hosts, with all that a job can serve; another user is on both."""

    def setUp(self):
        super().setUp()
        self.end = self.lab.folder / "end"
        self.lab.folder.chmod(0o755)
        self.home = self.lab.folder / "home"
        self.home.mkdir()
        os.chown(self.home, OWNER, OWNER)
        as_owner = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"]
        self.runs = [node.start(
            *as_owner, lab.HLAUNCH, "--nnodes", 2, "--nproc-per-node", 2, "--rdzv-endpoint",
            f"node0:{RENDEZVOUS}", "--max-restarts", 1, "--metrics-port", METRICS, "--status-page",
            PAGE, "--heartbeat-timeout", 3600, "--mpi", "any", "--no-python", jobs.PYTHON, "-c",
            WORKER, self.end, cwd="/",
            env={"HLAUNCH_TOKEN": lab.TOKEN, "PYTHONPATH": lab.BIN.parent / "python",
                 "PYTHONDONTWRITEBYTECODE": 1, "HOME": self.home, "XDG_STATE_HOME": self.home,
                 "TMPDIR": self.home})
            for node in self.nodes]

    def name(self, pid, roles, facts, door):
        """Which of DOORS it is; else words that say what is known of it."""
        role, kind = roles[pid], door[0]
        known = {RENDEZVOUS: "rendezvous", METRICS: "metrics", PAGE: "page",
                 int(facts["MASTER_PORT"]): "store",
                 int(facts.get("PMI_PORT", ":0").rsplit(":", 1)[1]): "PMI"}
        if kind == "tcp":
            own = {"agent": None if door[1] else "agent", "rank": "rank", "check": "check",
                   "pmix": "PMIx"}
            return known.get(door[2]) or own.get(role) or f"a port of the {role}: {door}"
        for pattern, name in (("@hlaunch-job/", "commands"), ("@hlaunch-greeting-", "greeting"),
                              ("@hlaunch/", "claim"), ("@hlaunch-comm-", f"{role}'s memory"),
                              ("@[0-9a-f]{5}$", "heartbeats")):
            if re.match(pattern, door[1]):
                return name
        return f"a socket of the {role}: {door}"

    def where(self, node, door):
        """Family, kind and address of a door, for who comes to it on its own host."""
        if door[0] == "tcp":
            return "AF_INET", "SOCK_STREAM", "127.0.0.1" if door[1] else node.ip, door[2]
        kind = {"stream": "SOCK_STREAM", "datagram": "SOCK_DGRAM", "packets": "SOCK_SEQPACKET"}[door[0]]
        return "AF_UNIX", kind, re.sub("^@", "\0", door[1]), 0

    def doors_on(self, node, run):
        """Names of doors, and where they are: [(name, place)]."""
        facts = json.loads(run.wait_for(r"FACTS (\{.*\})", 60)[1])
        agent = jobs.agent_of(run)
        roles = {run.pid: "keeper", agent: "agent"}
        for pid in lab.descendants(agent):
            line = lab.command_line(pid)
            roles[pid] = ("pmix" if "pmix" in line else "rank" if "init_process_group" in line
                          else "check" if " check --lines" in line else f"process '{line}'")
        found = {(self.name(pid, roles, facts, door), self.where(node, door))
                 for pid in roles for door in doors_of(pid)}
        return sorted(found)

    def knock(self, node, run):
        """Lets another user of the host knock at all doors there; returns [(door, answer)]."""
        doors = self.doors_on(node, run)
        unknown = {door for door, _ in doors} - set(DOORS)
        self.assertEqual(unknown, set(), "what does another user get there? Say it in DOORS")
        questions = self.lab.folder / f"questions-{node.name}"
        questions.write_text("".join(
            json.dumps({"door": door, "at": [*at, DOORS[door][0].hex(), PATIENCE.get(door, 200)]})
            + "\n" for door, at in doors))
        knocks = node.run("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "sh",
                          "-c", f'exec {jobs.PYTHON} -c "$0" <{questions}', KNOCK, cwd="/",
                          timeout=120)
        answers = [tuple(json.loads(line)) for line in knocks.out.splitlines()]
        print(node.name, *(f"{door}: {answer:.60}" for door, answer in answers), sep="\n  ",
              flush=True)
        self.assertEqual(len(answers), len(doors), str(knocks))
        for door, answer in answers:
            self.assertRegex(answer, DOORS[door][1], f"{door}: {knocks}")
        return answers

    def test_another_user_gets_at_each_door_what_the_table_says(self):
        host, other = zip(self.nodes, self.runs)
        seen = {door for door, _ in self.knock(*host)}
        # The other node's voter comes with the first round.
        def voter_answers():
            answers = self.knock(*other)
            seen.update(door for door, _ in answers)
            return any(door == "agent" and "401" in answer for door, answer in answers)
        self.assertTrue(lab.poll(voter_answers, 30))
        # All of them were there, except those of a library of the machine, and of hosts that check
        # the paths between them only while no worker runs.
        self.assertEqual(set(DOORS) - seen - {"PMIx", "check", "check's memory"}, set())
        self.end.touch()
        self.assert_done(self.runs, jobs.OK, 60)


if __name__ == "__main__":
    lab.main()
