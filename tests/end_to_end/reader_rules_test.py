#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What programs that cannot run here would conclude from a worker's environment. The rule of each
is rewritten here in a few lines from its source, and applied to workers of jobs that srun, mpirun
or no launcher has started. Lightning, accelerate and transformers themselves are tested
elsewhere."""

import json

import jobs
import lab

DUMP = str(lab.WORKERS / "dump_start.py")

OUTER = {  # From srun within mpirun; all values differ from the worker's place.
    "SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": "gpu-[1-2]", "SLURM_STEP_NODELIST": "gpu-[1-2]",
    "SLURM_PROCID": "7", "SLURM_LOCALID": "7", "SLURM_NTASKS": "9", "SLURM_NODEID": "1",
    "OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_SIZE": "9", "OMPI_COMM_WORLD_LOCAL_RANK": "7",
    "OMPI_MCA_orte_hnp_uri": "1;tcp://10.0.0.9:1", "PMI_RANK": "7", "PMI_SIZE": "9",
    "PMIX_RANK": "7", "MPI_LOCALRANKID": "7", "MPI_LOCALNRANKS": "9", "HOROVOD_RANK": "7",
    "RANK": "7", "WORLD_SIZE": "9", "LOCAL_RANK": "7", "MASTER_ADDR": "10.0.0.9"}


def numbers(env, *names):
    """The values of these variables, or None unless all are set."""
    return tuple(int(env[name]) for name in names) if all(name in env for name in names) else None


def torchelastic(env):  # torch.distributed.is_torchelastic_launched
    return "TORCHELASTIC_RUN_ID" in env


def deepspeed(env):  # deepspeed/comm/comm.py: otherwise it asks AzureML, SageMaker and mpi4py
    ready = all(env.get(name) for name in ("MASTER_ADDR", "MASTER_PORT"))
    return numbers(env, "RANK", "WORLD_SIZE", "LOCAL_RANK") if ready else "mpi4py"


def gaudi_bridge(env):  # habana_frameworks/torch/distributed/hccl/__init__.py
    torch_trio = numbers(env, "RANK", "WORLD_SIZE", "LOCAL_RANK")
    return torch_trio or numbers(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_RANK")


def horovod(env):  # horovod/runner/common/util/env.py; half a family raises
    for family in ("HOROVOD_", "OMPI_COMM_WORLD_", "PMI_"):
        there = [name for name in ("RANK", "SIZE") if family + name in env]
        if there:
            return numbers(env, family + "RANK", family + "SIZE") or f"raises over {family}"
    return 0, 1


def oneccl_launcher(env):  # oneCCL src/common/global/global.cpp
    return "mpi" if any(name in env for name in ("MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_RANK",
                                                 "PMI_SIZE", "PMIX_RANK")) else "ofi"


def oneccl_of_torchrun(env):  # with CCL_PROCESS_LAUNCHER=torchrun
    return numbers(env, "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def jax_cluster(env):  # jax/_src/clusters, in its order
    if "OMPI_MCA_orte_hnp_uri" in env:
        return "openmpi"
    slurm = all(name in env for name in ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS",
                                         "SLURM_PROCID", "SLURM_LOCALID"))
    return numbers(env, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID") if slurm else None


def jax_coordinator(env):  # jax.distributed.initialize
    host, _, port = env.get("JAX_COORDINATOR_ADDRESS", "").rpartition(":")
    return bool(host) and port.isdigit() and port != env["MASTER_PORT"]


def mpich(env):  # It starts PMI if it sees any; both kinds at once are an error, unless one is named.
    return ("PMI_ID" in env and env.get("PMI_PORT", "").startswith("127.0.0.1:")
            and "PMI_SIZE" not in env and env.get("MPIR_CVAR_PMI_VERSION") == "1")


# A reader, and its expected result in local rank r of two: by default, with --compat openmpi,
# slurm.
READERS = [
    (torchelastic, lambda r: True, None, None),
    (deepspeed, lambda r: (r, 2, r), None, None),
    (gaudi_bridge, lambda r: (r, 2, r), None, None),
    (horovod, lambda r: (0, 1), lambda r: (r, 2), None),
    (oneccl_launcher, lambda r: "ofi", None, None),
    (oneccl_of_torchrun, lambda r: (r, 2), None, None),
    (jax_cluster, lambda r: None, None, lambda r: (r, 2, r)),
    (jax_coordinator, lambda r: True, None, None),
    (mpich, lambda r: True, None, None),
]


class ReaderRules(jobs.JobTest):
    count = 1

    def workers(self, options, env):
        folder = self.nodes[0].folder / f"dump{len(self.lab.runs)}"
        folder.mkdir()
        words = ["env", "-i", *(f"{name}={value}" for name, value in
                                {"PATH": "/usr/bin:/bin", "DUMP": folder, **env}.items())]
        run = self.nodes[0].start(*words, lab.HLAUNCH, "--nproc-per-node", 2, *options, DUMP)
        self.assert_done([run], jobs.OK, 20)
        return [json.loads((folder / f"{rank}_0.json").read_text(encoding="utf-8"))["env"]
                for rank in range(2)]

    def test_every_reader_finds_its_place(self):
        slurm = {name: OUTER[name] for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST")}
        for column, options, env in ((1, [], {}), (1, [], OUTER),
                                     (2, ["--compat", "openmpi"], {}),
                                     (2, ["--compat", "openmpi"], OUTER),
                                     # The allocation has two nodes, but the job uses one.
                                     (3, ["--compat", "slurm", "--nnodes", 1], slurm),
                                     (3, ["--compat", "slurm"], OUTER)):
            for rank, worker in enumerate(self.workers(options, env)):
                for reader in READERS:
                    expected = reader[column] or reader[1]
                    with self.subTest(reader[0].__name__, options=options, outer=len(env)):
                        self.assertEqual(reader[0](worker), expected(rank))


if __name__ == "__main__":
    lab.main()
