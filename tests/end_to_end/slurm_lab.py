# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A real Slurm on the hosts of lab.py: slurmctld on node0, a slurmd on each node.

    with SlurmLab(3) as slurm:
        slurm.run("srun", "-N3", "hostname")

Keys, sockets and spools lie in the lab's folder and nothing in /etc. The daemons are processes of
the nodes and end with them. One munged serves all nodes; it is a child of this process and ends
with it. Each node has four GPUs, which are device files with no device behind them.
"""

import os
import pathlib
import shutil
import stat
import subprocess

import lab

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo", "munged")
PACKAGES = "slurmctld slurmd slurm-client munge"
KILL_WAIT = 8  # Seconds from SIGTERM to SIGKILL, longer than any pause of a worker.
GRACE_TIME = 8  # Seconds that a job has to end once it must make room for an urgent one.

CONF = """
ClusterName=lab
SlurmctldHost=node0({subnet}.10)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait={kill_wait}
JobRequeue=1
GresTypes=gpu
NodeName=DEFAULT CPUs=8 RealMemory=100 Gres=gpu:4 State=UNKNOWN
NodeName=node[0-{last}] NodeAddr={subnet}.[10-{last_address}]
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=main Default=YES PriorityTier=10 GraceTime={grace_time}
PartitionName=urgent PriorityTier=20
"""


def why_not():
    """Why Slurm cannot run here; empty if it can."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        return f"no {', '.join(missing)} here (Debian: {PACKAGES})"
    if pathlib.Path("/proc/self/uid_map").read_text(encoding="utf-8").split()[2] == "1":
        return "munged and slurmd need root, not only a user namespace"
    return ""


class SlurmLab(lab.Lab):
    def __init__(self, count):
        self._munged = None
        super().__init__(count)
        try:
            self.conf = self.folder / "slurm"
            self.conf.mkdir(mode=0o755)
            self.folder.chmod(0o755)  # Others must reach munge's socket in it.
            (self.conf / "state").mkdir()
            self._write_conf(count)
            self._start_munge()
            self._start_daemons()
        except BaseException:
            self.close()
            raise

    def _write_conf(self, count):
        folder = self.conf
        (folder / "slurm.conf").write_text(
            CONF.format(folder=folder, subnet=lab.SUBNET, last=count - 1,
                        last_address=9 + count, kill_wait=KILL_WAIT, grace_time=GRACE_TIME), encoding="utf-8")
        (folder / "gres.conf").write_text(
            f"NodeName=node[0-{count - 1}] Name=gpu File={folder}/gpu[0-3]\n", encoding="utf-8")
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="utf-8")
        for index in range(4):  # The same device as /dev/null.
            os.mknod(folder / f"gpu{index}", stat.S_IFCHR | 0o666, os.makedev(1, 3))

    def _start_munge(self):
        key, socket = self.conf / "munge.key", self.conf / "munge.socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._munged = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "munged", "--foreground", "--force",
             f"--key-file={key}", f"--socket={socket}", f"--pid-file={self.conf}/munge.pid",
             f"--log-file={self.conf}/munge.log", f"--seed-file={self.conf}/munge.seed"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not lab.poll(lambda: socket.exists() or self._munged.poll() is not None, 10) \
                or self._munged.poll() is not None:
            raise RuntimeError(f"munged did not start: {self.logs()}")

    def _start_daemons(self):
        self.start("slurmctld", "-D", "-c")
        for node in self.nodes:
            (self.conf / f"spool.{node.name}").mkdir()
            self.start("slurmd", "-D", "-c", "-N", node.name, node=node)
        if not lab.poll(self._all_idle, 20, 0.1):
            raise RuntimeError(f"Slurm's nodes are not idle after 20 s:\n{self.logs()}")

    def _all_idle(self):
        said = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").out.split()
        return said == [word for node in self.nodes for word in (node.name, "idle")]

    def start(self, *argv, node=None, env=None, **options):
        path = f"{lab.BIN}:{os.environ['PATH']}"
        return (node or self.nodes[0]).start(
            *argv, env={"SLURM_CONF": self.conf / "slurm.conf", "PATH": path, **(env or {})},
            **options)

    def run(self, *argv, timeout=30, **options):
        run = self.start(*argv, **options)
        run.code = run.wait(timeout)
        return run

    def job_of(self, run):
        """The id of the job that an `srun` made, once there is one."""
        name = run.argv[run.argv.index("-J") + 1]

        def look():
            return self.run("squeue", "-h", "-n", name, "-o", "%A").out.split()
        found = lab.poll(look, 15, 0.1)
        if not found:
            raise AssertionError(f"has no job: {run}\n{self.logs()}")
        return found[0]

    def logs(self):
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}"
                         for file in sorted(self.conf.glob("*.log")))

    def close(self):
        super().close()
        if self._munged:
            self._munged.kill()
            self._munged.wait(10)
