#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Two hosts with the variables of each system: hlaunch, started once on each, forms one job."""

import json

import jobs
import lab

HOSTS = ["node0", "node1"]
IPS = [f"{lab.SUBNET}.{index + 10}" for index in range(2)]

# The system, further arguments, and the variables of node i, whose files lie in `folder`.
SYSTEMS = [
    ("mpirun", "", lambda i, folder: {
        "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_RANK": i, "OMPI_COMM_WORLD_LOCAL_SIZE": 1,
        "OMPI_COMM_WORLD_LOCAL_RANK": 0, "OMPI_MCA_orte_hnp_uri": f"1;tcp://{IPS[0]}:43210"}),
    ("mpirun", "", lambda i, folder: {
        "PMI_SIZE": 2, "PMI_RANK": i, "MPI_LOCALNRANKS": 1, "MPI_LOCALRANKID": 0,
        "MASTER_ADDR": HOSTS[0]}),
    ("pbs", "", lambda i, folder: {
        "PBS_JOBID": "4711.server", "PBS_NODENUM": i, "PBS_TASKNUM": i + 2,
        "PBS_NODEFILE": lines(folder, HOSTS)}),
    ("pbs", "", lambda i, folder: {
        "PBS_JOBID": "8.s", "PALS_RANKID": i, "PALS_NODEID": i, "PALS_LOCAL_RANKID": 0,
        "PBS_NODEFILE": lines(folder, HOSTS)}),
    ("lsf", "", lambda i, folder: {
        "LSB_JOBID": 9, "LSB_MCPU_HOSTS": "batch 1 node0 1 node1 1", "JSM_NAMESPACE_SIZE": 2}),
    ("lsf", "--cluster=lsf", lambda i, folder: {
        "LSB_JOBID": 10, "LSB_MCPU_HOSTS": "node0 1 node1 1"}),
    ("sge", "--cluster=sge", lambda i, folder: {
        "JOB_ID": 12, "NHOSTS": 2,
        "PE_HOSTFILE": lines(folder, [f"{host} 1 all.q@{host} UNDEFINED" for host in HOSTS])}),
    ("sagemaker", "", lambda i, folder: {
        "SM_HOSTS": json.dumps(HOSTS), "SM_CURRENT_HOST": HOSTS[i], "SM_NUM_GPUS": 0}),
    ("vertex", "", lambda i, folder: {
        "CLUSTER_SPEC": json.dumps({"cluster": {"workerpool0": ["node0:2222"],
                                                "workerpool1": ["node1:2222"]},
                                    "task": {"type": f"workerpool{i}", "index": 0}})}),
    ("flux", "--rdzv-endpoint=node0", lambda i, folder: {
        "FLUX_JOB_ID": "f1", "FLUX_TASK_RANK": i, "FLUX_JOB_NNODES": 2, "FLUX_JOB_SIZE": 2}),
    ("condor", "--rdzv-endpoint=node0", lambda i, folder: {
        "_CONDOR_PROCNO": i, "_CONDOR_NPROCS": 2}),
    ("aws-batch", "", lambda i, folder: {
        "AWS_BATCH_JOB_NUM_NODES": 2, "AWS_BATCH_JOB_NODE_INDEX": i,
        **({"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": IPS[0]} if i else {})}),
    ("skypilot", "", lambda i, folder: {
        "SKYPILOT_NUM_NODES": 2, "SKYPILOT_NODE_RANK": i, "SKYPILOT_NODE_IPS": "\n".join(IPS)}),
    ("beaker", "", lambda i, folder: {
        "BEAKER_REPLICA_COUNT": 2, "BEAKER_REPLICA_RANK": i,
        "BEAKER_LEADER_REPLICA_HOSTNAME": IPS[0], "BEAKER_ASSIGNED_GPU_COUNT": 0}),
    ("dstack", "", lambda i, folder: {
        "DSTACK_NODES_NUM": 2, "DSTACK_NODE_RANK": i, "DSTACK_MASTER_NODE_IP": IPS[0],
        "DSTACK_GPUS_PER_NODE": 0}),
    ("ngc", "", lambda i, folder: {
        "NGC_ARRAY_SIZE": 2, "NGC_ARRAY_INDEX": i, "NGC_MASTER_ADDR": IPS[0], "NGC_JOB_ID": 5}),
    ("leaderworkerset", "", lambda i, folder: {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "LWS_GROUP_SIZE": 2, "LWS_WORKER_INDEX": i,
        "LWS_LEADER_ADDRESS": HOSTS[0]}),
    ("volcano", "", lambda i, folder: {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "VC_TASK_INDEX": i,
        "VC_WORKER_HOSTS": ",".join(HOSTS)}),
    ("nomad", "--nnodes=2 --rdzv-endpoint=node0", lambda i, folder: {
        "NOMAD_ALLOC_ID": "a", "NOMAD_ALLOC_INDEX": i}),
    ("env", "", lambda i, folder: {
        "MASTER_ADDR": HOSTS[0], "MASTER_PORT": 29777, "NODE_RANK": i, "NNODES": 2}),
    ("batchy", "", lambda i, folder: {
        "BATCHY_NODES": 2, "BATCHY_INDEX": i, "BATCHY_HOSTS": " ".join(HOSTS),
        "HLAUNCH_CLUSTER_FILE": lines(folder, [json.dumps({"systems": [
            {"word": "batchy", "title": "a node of Batchy", "proof": ["BATCHY_NODES"],
             "nnodes": "BATCHY_NODES", "rank": "BATCHY_INDEX", "hosts": "BATCHY_HOSTS"}]})])}),
]


def lines(folder, content):
    """Writes these lines to a new file in `folder`; returns its path."""
    path = folder / f"lines{len(list(folder.iterdir()))}"
    path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return path


class Clusters(jobs.JobTest):
    def test_two_nodes_of_each_system_are_one_job(self):
        for number, (system, words, variables) in enumerate(SYSTEMS):
            with self.subTest(system, number=number):
                runs = [node.start(lab.HLAUNCH, "--nproc-per-node=1", *words.split(), jobs.WORKER,
                                   "env", env={"PYTHON_EXEC": jobs.PYTHON,
                                               **variables(node.index, node.folder)})
                        for node in self.nodes]
                self.assert_done(runs, jobs.OK, 60)
                told = [jobs.environments(run)[0] for run in runs]
                self.assertEqual([(facts["RANK"], facts["NODE_RANK"], facts["WORLD_SIZE"])
                                  for facts in told], [("0", "0", "2"), ("1", "1", "2")])
                explained = self.nodes[1].run(lab.HLAUNCH, "--explain-cluster", "--json",
                                              *words.split(), "true",
                                              env=variables(1, self.nodes[1].folder))
                self.assertEqual(json.loads(explained.out)["cluster"], system, explained)


if __name__ == "__main__":
    lab.main()
