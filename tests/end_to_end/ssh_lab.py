# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Real sshds on a lab's nodes: node0 has a key that all accept, and knows the host keys of all.

    ssh = SshLab(lab)
    ssh.end_sshd(lab.nodes[1])

Each node has its own ~/.ssh and /run/sshd, so nothing of this machine changes. Needs root.
"""

import os
import shutil
import signal
import subprocess

import lab

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin")
CONFIG = """
HostKey {dir}/host_key
PidFile none
AuthorizedKeysFile {dir}/authorized_keys
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
"""


def missing():
    """What these tests need and do not find here; empty if nothing is missing."""
    tools = SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")
    return "" if tools else "no sshd or ssh here (Debian: openssh-server, openssh-client)"


def keygen(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def at(node, script):
    """Runs a script on a node; raises if the script fails."""
    subprocess.run([*node.enter(), "sh", "-c", script], check=True, timeout=10 * lab.PATIENCE)


class SshLab:
    def __init__(self, of):
        self.nodes, self.home = of.nodes, of.folder / "home"
        self.home.mkdir(mode=0o700)
        keygen(self.home / "id_ed25519")
        for node in self.nodes:
            keygen(node.folder / "host_key")
            (node.folder / "sshd_config").write_text(CONFIG.format(dir=node.folder),
                                                     encoding="utf-8")
            # What this machine's root has in .bashrc (pyenv, conda) may wait for locks.
            at(node, f"mkdir -p /root/.ssh /run/sshd && mount --bind {self.home} /root/.ssh &&"
                     " mount -t tmpfs -o mode=755 tmpfs /run/sshd &&"
                     " { [ ! -f /root/.bashrc ] || mount --bind /dev/null /root/.bashrc; }")
        self.heal()
        for node in self.nodes:
            self._start_sshd(node)

    def _start_sshd(self, node, port=22):
        node.sshd = node.start(SSHD, "-D", "-e", "-f", node.folder / "sshd_config")
        listens = [*node.enter(), "sh", "-c", f"ss -Htln sport = {port} | grep -q ."]
        if not lab.poll(lambda: subprocess.run(listens).returncode == 0, 5):
            raise RuntimeError(f"sshd of {node.name} does not listen: {node.sshd}")

    def heal(self):
        """Restores all keys."""
        for node in self.nodes:
            shutil.copy(self.home / "id_ed25519.pub", node.folder / "authorized_keys")
        lines = [f"{node.name},{node.ip} "
                 + (node.folder / "host_key.pub").read_text(encoding="utf-8")
                 for node in self.nodes]
        (self.home / "known_hosts").write_text("".join(lines), encoding="utf-8")

    def refuse(self, node):
        """Makes the node accept no key."""
        (node.folder / "authorized_keys").write_text("", encoding="utf-8")

    def forget_hosts(self):
        """Makes node0 know no host key."""
        (self.home / "known_hosts").write_text("", encoding="utf-8")

    def limit(self, node, startups):
        """Restarts the node's sshd with this MaxStartups."""
        self.end_sshd(node)
        with (node.folder / "sshd_config").open("a", encoding="utf-8") as config:
            config.write(f"MaxStartups {startups}\n")
        self._start_sshd(node)

    def listen(self, node, *ports):
        """Restarts the node's sshd on these ports."""
        self.end_sshd(node)
        with (node.folder / "sshd_config").open("a", encoding="utf-8") as config:
            config.write("".join(f"Port {port}\n" for port in ports))
        self._start_sshd(node, ports[0])

    def end_sshd(self, node):
        os.kill(node.sshd.pid, signal.SIGKILL)
        node.sshd.wait(5)
