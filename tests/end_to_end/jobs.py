# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Jobs on the lab's nodes: starts hlaunch on each, reads workers' output, finds processes."""

import json
import re
import signal

import lab

CODES = {name: int(code) for name, code in re.findall(
    r"kExit(\w+) =\s*(\d+);",
    (lab.ROOT / "proto/contract/exit_code.h").read_text(encoding="utf-8"))}
OK, USAGE, NOT_EXECUTABLE, NOT_FOUND = (
    CODES[name] for name in ("Ok", "Usage", "NotExecutable", "NotFound"))
BAD_ENDPOINT, PORT_IN_USE, REFUSED, JOIN_TIMEOUT = (
    CODES[name] for name in ("BadEndpoint", "PortInUse", "Refused", "JoinTimeout"))
RENDEZVOUS_LOST, NODE_LOST, NODE_STOPPED, AGENT_LOST = (
    CODES[name] for name in ("RendezvousLost", "NodeLost", "NodeStopped", "AgentLost"))
NO_RESOURCES, PREFLIGHT = CODES["NoResources"], CODES["Preflight"]
NO_PROGRESS = CODES["NoProgress"]
KILLED = CODES["SignalBase"] + signal.SIGKILL
# hlaunch's own failures: all codes beyond 128 + a signal.
OWN_CODES = sorted(code for code in CODES.values() if code > CODES["SignalBase"])

WORKER = str(lab.WORKERS / "e2e_worker.py")
WRAPPER = str(lab.WORKERS / "e2e_wrapper.sh")
PYTHON = "/usr/bin/python3"

# On rare occasions, after all work is done, a gloo thread that releases a tensor while Python ends
# aborts the process: https://github.com/pytorch/pytorch/issues/190489. A barrier after the last
# tensors makes that rare. destroy_process_group does not help with a DistributedDataParallel of
# torch 2.13: either that object keeps the group, or the thread and the end of the group wait for
# each other.
TORCH_ENDS_BADLY = "terminate called without an active exception"


def story(events):
    """The events, except those about slow, silent or waiting nodes, as on a busy machine."""
    return [event for event in events if not re.match("waiting|health_|contact_", event["event"])]


def fails_once(folder, rank, world_size):
    """A shell's command: `rank` exits with 7 once all ranks of the first round run; the second round
    succeeds. The ranks count each other by files in `folder`."""
    return (f'test "$TORCHELASTIC_RESTART_COUNT" = 0 || exit 0; touch "{folder}/began$RANK"; '
            f'test "$RANK" = {rank} || exec sleep 600; '
            f'until test "$(ls "{folder}" | grep -c "^began")" = {world_size}; do sleep 0.1; done; '
            'exit 7')


def own_lines(run):
    """The lines that hlaunch itself wrote to stderr."""
    return [line for line in run.err.splitlines() if re.match(r"hlaunch(\[[^]]*\])?: ", line)]


def said_at_once(run):
    """The lines of stderr, except those about how long it waits, which a busy machine causes."""
    return [line for line in run.err.splitlines() if not re.match(r"hlaunch(\[[^]]*\])?: waiting ", line)]


def environments(run):
    """The contract's variables as this run's workers saw them, in the order of their output."""
    return [json.loads(text) for text in re.findall(r"ENV (\{.*\})", run.out)]


def agent_of(run):
    """The pid of the agent, which is the keeper's only child."""
    found = lab.poll(lambda: lab.children(run.pid), 5)
    if not found:
        raise AssertionError(f"the keeper has no agent: {run}")
    return found[0]


class JobTest(lab.LabTest):
    """Starts jobs on all nodes of the lab. No process may be left anywhere at a test's end."""

    endpoint = "node0:29400"

    def start(self, *command, nodes=None, options=(), env=None, cwd=None):
        """Starts `hlaunch` with the same words on every node; returns the runs in node order."""
        nodes = self.nodes if nodes is None else nodes
        meet = ["--nnodes", len(self.nodes), "--rdzv-endpoint", self.endpoint]
        return [node.start(lab.HLAUNCH, *(meet if len(self.nodes) > 1 else []), *options, *command,
                           cwd=cwd, env={"PYTHON_EXEC": PYTHON, **(env or {})}) for node in nodes]

    def wait_for_workers(self, runs, count, timeout=20):
        """Waits until `count` workers in total have printed their environment; returns those."""
        def said():
            return [facts for run in runs for facts in environments(run)]
        lab.poll(lambda: len(said()) >= count or any(run.process.poll() is not None
                                                     for run in runs), timeout)
        found = said()
        self.assertGreaterEqual(len(found), count, self.told(runs))
        return found

    def told(self, runs):
        return "\n".join(str(run) for run in runs)

    def assert_said(self, run, *patterns):
        for pattern in patterns:
            self.assertRegex("\n".join(own_lines(run)), pattern, str(run))

    def assert_done(self, runs, codes, timeout):
        """All runs end in time with these codes (a list: one per run; a tuple: any of them)."""
        codes = codes if isinstance(codes, list) else [codes] * len(runs)
        for run, expected in zip(runs, codes):
            code = run.wait(timeout)
            allowed = expected if isinstance(expected, tuple) else (expected,)
            self.assertIn(code, allowed, self.told(runs))
        self.assert_nothing_left()

    def run_torch(self, start, proof, timeout):
        """Runs the job that `start` starts, a training that takes much less than `timeout`; returns
        its runs. If torch aborts as Python ends, after a rank has printed `proof` (a pattern), it
        starts the job once more. Python may crash as it tells of that."""
        runs = start()
        self.assert_done(runs, (OK, 128 + signal.SIGABRT, 128 + signal.SIGSEGV), timeout)
        said = self.told(runs)
        if TORCH_ENDS_BADLY in said and re.search(proof, said):
            print("torch aborted as it ended; once more", flush=True)
            runs = start()
            self.assert_done(runs, OK, timeout)
        for run in runs:
            self.assertEqual(run.process.returncode, OK, said)
        return runs
