#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lines of mpirun and mpiexec as they are published, word by word but for hosts and program, on
hosts with real sshds: the ranks of each host, their variables and the exit code are those of Open
MPI's mpirun and of MPICH's mpiexec on the same hosts. `published_lines_test` has many more."""

import dataclasses
import os
import pathlib
import re
import shutil

import hosts_test
import lab

# Open MPI 4.1 may hang if its children end at once.
PROBE = ["sh", "-c", "echo rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} on $(hostname)"
         " $NCCL_DEBUG $NCCL_SOCKET_IFNAME $I_MPI_PIN_DOMAIN; sleep 0.1; exit $CODE"]


@dataclasses.dataclass
class Published:
    page: str
    words: str  # {hosts} is a file.
    real: str = "mpirun.openmpi"
    name: str = "mpirun"


LINES = [
    Published("horovod docs/mpi.rst",
              "-np 6 -H node0:2,node1:2,node2:2 -bind-to none -map-by slot -x NCCL_DEBUG=INFO "
              "-x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib"),
    Published("horovod docs/mpi.rst, sshd at another port",
              "-np 4 -H node1:2,node2:2 -bind-to none -map-by slot -mca plm_rsh_args -p12345 "
              "-x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=^lo,docker0 -mca btl_tcp_if_exclude lo,docker0"),
    Published("aws/deep-learning-containers test/efa/scripts/nccl_allreduce.sh",
              "-x FI_PROVIDER=efa -n 6 -N 2 --hostfile {hosts} -x NCCL_DEBUG=INFO "
              "-x NCCL_SOCKET_IFNAME=^lo --mca pml ^cm --mca btl tcp,self "
              "--mca btl_tcp_if_exclude lo,docker0 --bind-to none"),
    Published("aws/sagemaker-training-toolkit src/sagemaker_training/mpi.py",
              "--host node1:3,node2:3 -np 6 --allow-run-as-root --tag-output "
              "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 "
              "-mca plm_rsh_no_tree_spawn 1 -bind-to none -map-by slot -mca pml ob1 "
              "-mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
              "-mca btl_vader_single_copy_mechanism none -x NCCL_SOCKET_IFNAME=eth0 "
              "-x NCCL_DEBUG=WARN -x LD_LIBRARY_PATH -x PATH"),
    Published("intel/torch-ccl README.md", "-n 6 -ppn 2 -f {hosts}", "mpiexec.hydra", "mpirun"),
    Published("intel-extension-for-pytorch launcher_distributed.py",
              "-l -np 4 -ppn 2 -genv OMP_NUM_THREADS=24 -genv MASTER_ADDR=127.0.0.1 "
              "-genv I_MPI_PIN_DOMAIN=[0x3,0xc] -hostfile {hosts}", "mpiexec.hydra",
              "mpiexec.hydra"),
]


class OnThreeHosts(hosts_test.SshTest):
    count = 3

    def setUp(self):
        super().setUp()
        self.links = self.lab.folder / "links"
        made = self.nodes[0].run(lab.HLAUNCH, "--install-links", self.links)
        self.assertEqual(made.code, 0, str(made))
        for node in self.nodes:
            self.ssh.listen(node, 22, 12345)
        self.hosts = self.lab.folder / "hosts"
        self.env = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}

    def words(self, line, real, code):
        slots = " slots=2" if line.real == "mpirun.openmpi" else ""
        self.hosts.write_text("".join(f"{node.name}{slots}\n" for node in self.nodes),
                              encoding="utf-8")
        words = line.words.format(hosts=self.hosts).split()
        # The real programs must find their own way between the lab's networks.
        if real and line.real == "mpirun.openmpi" and "oob_tcp_if_include" not in words:
            words = ["--mca", "oob_tcp_if_include", "eth0", *words]
        if real and line.real == "mpiexec.hydra":
            words = ["-iface", "eth0", *words]
        forward = ["-x", f"CODE={code}"] if line.real == "mpirun.openmpi" else ["-genv", "CODE", code]
        return [*words, *forward, *PROBE]

    def ran(self, run):
        """The exit code, and each rank's host and variables."""
        code = run.wait(60)
        return code, dict(re.findall(r"rank (\d+) (on .*?) *$", run.out, re.MULTILINE))

    def test_ranks_hosts_variables_and_codes_are_those_of_the_real_programs(self):
        for line in LINES if os.environ.get("HLAUNCH_AT_LENGTH") else LINES[::3]:
            with self.subTest(line.page):
                ours = self.ran(self.nodes[0].start(
                    self.links / line.name, *self.words(line, False, 0), env=self.env))
                number = int(re.search(r"-np? (\d+)", line.words)[1])
                self.assertEqual((ours[0], len(ours[1])), (0, number), self.told(self.lab.runs[-1:]))
                if shutil.which(line.real):
                    theirs = self.ran(self.nodes[0].start(
                        line.real, *self.words(line, True, 0), env=self.env))
                    self.assertEqual(ours, theirs, self.told(self.lab.runs[-2:]))
        self.assert_nothing_left()

    def test_a_failing_line_has_the_ranks_code(self):
        run = self.nodes[0].start(self.links / LINES[0].name, *self.words(LINES[0], False, 7),
                                  env=self.env)
        self.assertEqual(run.wait(60), 7, str(run))
        self.assert_nothing_left()


# Each host's MPI and DeepSpeed run in a container whose sshd listens at 3022, and nowhere else.
GAUDI = ("--allow-run-as-root --mca plm_rsh_args -p3022 --bind-to core --map-by ppr:4:socket:PE=6 "
         "-np {ranks} --mca btl_tcp_if_include {network} --mca ras_base_launch_orted_on_hn 1 "
         "--merge-stderr-to-stdout --prefix /opt/amazon/openmpi -H {hosts} -x PYTHONPATH -x MASTER_ADDR "
         "-x MASTER_PORT -x GC_KERNEL_PATH -x PT_HPU_LAZY_MODE=0")


class OnGaudisHosts(hosts_test.SshTest):
    count = 3

    def setUp(self):
        super().setUp()
        self.links = self.lab.folder / "links"
        self.links.mkdir()
        for name in ("mpirun", "deepspeed"):
            (self.links / name).symlink_to(lab.HLAUNCH)
        for node in self.nodes:
            self.ssh.listen(node, 3022)

    def assert_ranks(self, run, ranks):
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertEqual(sorted(map(int, re.findall(r"rank (\d+) on node[12]\b", run.out))),
                         list(range(ranks)), str(run))
        self.assert_nothing_left()

    def test_model_references_line_of_mpirun(self):
        packages = {path.read_text(encoding="utf-8") for path in pathlib.Path(
            "/sys/devices/system/cpu").glob("cpu*/topology/physical_package_id")}
        ranks = 8 * max(1, len(packages))  # Two hosts, four for each socket.
        line = GAUDI.format(ranks=ranks, network=f"{self.nodes[0].ip}/24",
                            hosts=f"node1:{ranks // 2},node2:{ranks // 2}")
        self.assert_ranks(self.nodes[0].start(self.links / "mpirun", *line.split(), *PROBE,
                                              env={"PT_HPU_LAZY_MODE": "1"}), ranks)

    def test_deepspeeds_line(self):
        hostfile = self.lab.folder / "hosts"
        hostfile.write_text("node1 slots=2\nnode2 slots=2\n", encoding="utf-8")
        line = (f"--num_nodes 2 --num_gpus 2 --hostfile {hostfile} --ssh_port 3022 --no_local_rank "
                f"--no_python --master_addr {self.nodes[1].ip}")
        self.assert_ranks(self.nodes[0].start(self.links / "deepspeed", *line.split(), *PROBE), 4)


if __name__ == "__main__":
    lab.main()
