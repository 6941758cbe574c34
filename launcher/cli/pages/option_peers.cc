// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/pages/option_peers.h"

namespace hlaunch {
namespace {

constexpr OptionPeer kPeers[] = {
    // Nodes and workers.
    {"--config", "better: these options as JSON", ""},
    {"--nnodes", "same", "the number of hosts in `--host`"},
    {"--nproc-per-node",
     "same, and `hpu`; better: counted without loading torch, and no more than there are",
     "`-N N`, `-ppn N`"},
    {"--max-restarts", "better: one budget and one count for the whole job, not for each node", ""},
    {"--max-stuck-restarts", "better: torchrun restarts a job that does not move", ""},
    {"--restart-window", "better: see `--max-restarts`", ""},
    {"--restart-pause", "better: torchrun starts again at once", ""},
    {"--restart-on", "better: torchrun restarts after every failure", ""},
    {"--end-on", "better: see `--restart-on`", ""},
    {"--free-on", "better: [a preemption costs no restart](failures.md#after-which-failures)", ""},
    {"--spares", "better: a lost or bad node is replaced", ""},
    {"--node-multiple", "better: torchrun runs with any number of nodes from MIN to MAX", ""},
    {"--on-join", "`restart`: same; better: [a choice](elastic.md#when-a-job-grows)", ""},
    {"--on-loss", "`shrink`: same; better: [a choice](elastic.md#when-a-node-is-lost)", ""},
    {"--preflight", "better: [a bad node is found before workers start](health.md)", ""},
    {"--preflight-action", "better: see `--preflight`", ""},
    {"--on-host-loss",
     "better: [a job outlives the node that hosts its rendezvous](failures.md#the-rendezvous)", ""},
    {"--preflight-share", "better: see `--preflight`", ""},
    {"--health-interval", "better: [what becomes worse](health.md#while-they-run) is named", ""},
    {"--on-partition",
     "better: [a cut between the nodes](health.md#a-cut-between-the-nodes) ends in a restart "
     "without those beyond it",
     ""},
    {"--drain-file", "better: [a node that will be gone is replaced](draining.md)", ""},
    {"--drain-url", "better: see `--drain-file`", ""},
    // Where the nodes meet.
    {"--rdzv-endpoint",
     "same; better: only the owner of the address hosts, and a foreign program on the port is "
     "named",
     ""},
    {"--rdzv-id", "same; better: a node with another id is told so, and does not hang", ""},
    {"--rdzv-backend", "same words, one rendezvous; `etcd` and `etcd-v2` are refused", ""},
    {"--rdzv-conf",
     "same keys; torchrun's others are accepted and not needed; better: an unknown key is refused "
     "with the known ones",
     ""},
    {"--node-rank", "same, and also at an endpoint, where torchrun ignores it", ""},
    {"--master-addr", "same", ""},
    {"--master-port", "same; better: a job of one node takes a free port", ""},
    {"--master-store",
     "`agent`: as torchrun, and the default for two workers or more; `worker`: as its "
     "`TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`, with a port that is kept; better: a program that "
     "starts its ranks itself runs in a lone worker",
     ""},
    {"--local-addr", "same; better: the way to the other nodes is used where none is given", ""},
    {"--standalone",
     "same; better: no port for the rendezvous, the store on loopback; with several nodes it is "
     "refused",
     ""},
    {"--token-file", "better: torchrun has no [secret](security.md)", ""},
    {"--tls", "better: torchrun neither encrypts nor [asks who is there](security.md)", ""},
    {"--tls-cert", "better: torchrun encrypts [nothing](security.md#certificates-of-your-site)",
     ""},
    {"--tls-key", "better: see `--tls-cert`", ""},
    {"--tls-ca", "better: see `--tls-cert`", ""},
    // Hosts to start from here.
    {"--hosts", "better: torchrun is started on each host by something else", "`--host`; `-hosts`"},
    {"--hostfile", "better: see `--hosts`", "same; `-f`"},
    {"--include", "better: see `--hosts`", "`--host` beside `--hostfile`"},
    {"--exclude", "better: see `--hosts`", ""},
    {"--launch-agent", "better: see `--hosts`", "`--mca plm_rsh_agent`; `-launcher-exec`"},
    {"--agent-path", "better: see `--hosts`", "`--prefix`"},
    {"--detach", "better: torchrun needs nohup, tmux or the like on each host", "nohup, tmux"},
    {"--push", "better: torchrun must be on each host", "`--preload-binary` for the program alone"},
    {"--export-var", "better: `VAR=VALUE torchrun …`, on each host", "`-x`; `-genv`"},
    {"--export", "better: see `--hosts`", "`-genvall`, `-genvnone`, `-genvlist`"},
    // Times.
    {"--join-timeout", "`--rdzv-conf join_timeout=S`", ""},
    {"--last-call", "`--rdzv-conf last_call_timeout=S`", ""},
    {"--grow-interval", "better: there each node that joins restarts all workers", ""},
    {"--boundary-limit",
     "better: [workers end after a checkpoint](elastic.md#when-a-job-grows), there anywhere", ""},
    {"--timeout", "better: as `timeout S torchrun …`, with a code and a cause", "same, with 110"},
    {"--shutdown-timeout", "same, also `5m`", "fixed at 1 s in Open MPI"},
    {"--loss-limit", "better: lost nodes are noticed and told from slow ones", ""},
    // Master store.
    {"--store-allow",
     "better: torchrun's store serves whoever reaches it, on all addresses, and all users", ""},
    {"--store-dialect",
     "better: all releases since 1.9 by themselves; with the word, 1.13's first `delete_key` does "
     "not take 0.25 s",
     ""},
    {"--store-proxy",
     "better: what workers say to the master store can be encrypted, with one connection for a "
     "node; "
     "but a server beside the store is then not found at `MASTER_ADDR`",
     ""},
    {"--no-store-proxy", "as torchrun does: in clear", ""},
    {"--any-user", "as torchrun does: its store serves all users", ""},
    {"--store-max-key", "better: fixed there", ""},
    {"--store-max-value", "better: fixed there", ""},
    {"--store-max-total", "better: unlimited there", ""},
    // In a cluster.
    {"--cluster", "better: [in a cluster](clusters.md) nodes, rank and endpoint need not be typed",
     "under Slurm it knows the nodes too"},
    {"--nodes", "better: your own cluster places jobs", ""},
    {"--constraint", "better: the same", ""},
    {"--exclusive", "better: the same", ""},
    {"--cluster-file", "better: a site's own systems", ""},
    {"--explain-cluster", "better: what was found, from which variable", ""},
    // The program.
    {"--module", "same", ""},
    {"--no-python", "same; better: a program that runs by itself needs no such word",
     "always a program"},
    {"--run-path", "same, in a fresh interpreter, so the script's folder is in `sys.path`", ""},
    {"--preload", "better: there each rank imports everything again, also after a failure", ""},
    {"--wdir", "better: there `cd DIR` before", "same; `-wdir`"},
    {"--also", "better: there every rank runs one script", "`:`"},
    {"--stdin", "better: local rank 0 reads it", "`--stdin 0`"},
    {"--role", "same", ""},
    {"--signals-to-handle", "same; better: a signal that nobody can pass on is refused",
     "`--forward-signals`"},
    {"--pass-local-rank", "as `torch.distributed.launch` does for old scripts", ""},
    {"--place-in-words", "better: beside `${local_rank}`, which is always replaced", ""},
    {"--use-env", "as `torch.distributed.launch`", ""},
    {"--virtual-local-rank", "same", ""},
    {"--mpi", "better: [MPI programs](mpi.md) run", "always, for its own MPI"},
    {"--compat", "better: scripts that read other launchers' variables", ""},
    {"--keep-env", "as torchrun always does: nothing inherited is taken away", ""},
    // Stalled workers.
    {"--heartbeat-timeout", "better: [a worker that stalls](stalls.md) is found and named", ""},
    {"--stall-action", "better: see `--heartbeat-timeout`", ""},
    {"--hang-timeout", "better: [a hang](hangs.md) explains itself, and the script needs no change",
     ""},
    {"--hang-action", "better: see `--hang-timeout`", ""},
    {"--watch-log", "better: [what the output says](stalls.md#what-the-output-says) is acted on",
     ""},
    {"--watch-log-silence", "better: see `--watch-log`", ""},
    // For torchrun's command lines.
    {"--monitor-interval", "accepted", ""},
    {"--start-method", "accepted", ""},
    {"--event-log-handler",
     "`null` is accepted; others name Python code of torch's, and are refused", ""},
    {"--logs-specs", "only default: other names are Python code of torch's", ""},
    // Devices.
    {"--devices", "better: with the numbers of [`hlaunch devices`](devices.md), for every kind",
     ""},
    {"--isolate-devices", "better: as `--virtual-local-rank`, with LOCAL_RANK as it is", ""},
    {"--oversubscribe", "better: torchrun starts and lets workers fail",
     "the same word, for slots"},
    {"--per-node", "better: Lightning's own way, with one process on each node", ""},
    {"--sysroot", "better: a described machine, for tests", ""},
    // Binding to CPUs.
    {"--bind", "better: [CPUs and memory near the device](binding.md), of every kind",
     "`--bind-to`"},
    {"--numa-binding",
     "same CPUs; better: without `numactl`, with memory, and with devices of every kind or none; "
     "where a device's NUMA node is unknown workers are dealt evenly (there: all to node 0), and "
     "too few cores are a warning",
     ""},
    {"--report-bindings", "better: drawn", "same"},
    // Output.
    {"--log-dir", "same files; better: a full disk costs log lines, not the job",
     "`--output-filename DIR`"},
    {"--redirects", "same; better: local ranks from 10 on can be named, as in `0:1,12:3`", ""},
    {"--tee", "same; better: as for `--redirects`", ""},
    {"--local-ranks-filter", "same; better: a rank that this node lacks is told", ""},
    {"--duplicate-stdout-filters",
     "same; better: also of lines that are not shown; an empty text is left out (for torchrun "
     "every line has it)",
     ""},
    {"--duplicate-stderr-filters", "same; better: as for stdout", ""},
    {"--log-line-prefix-template", "same", ""},
    {"--log-prefix", "as its `--log-line-prefix-template`, which it beats", "`--tag-output`"},
    {"--timestamp-output", "better: torchrun's lines have none", "same"},
    {"--merge-stderr", "as `2>&1`", "`--merge-stderr-to-stdout`"},
    {"--console", "better: on a terminal equal lines and tracebacks of several ranks are one", ""},
    {"--log-rotate", "better: a log file of that size is put aside", ""},
    {"--report", "better: [the report](report.md), for programs", ""},
    {"--termination-log", "better: the first cause of a failure where Kubernetes shows it", ""},
    {"--json", "better: `{\"time\", \"level\", \"host\", \"message\"}`", ""},
    {"--metrics-port", "better: [metrics](monitoring.md) for Prometheus, `/healthz`, `/readyz`",
     ""},
    {"--status-page", "better: [a page](status.md) that says what the job does or waits for", ""},
    {"--on-event", "better: [told](monitoring.md#being-told) of what becomes of the job", ""},
    {"--verbose", "better: says which values came from where", "same"},
    {"--quiet", "better", "same"},
    // Instead of a job.
    {"--dry-run", "better: what would be run; also with `--json`", "`--do-not-launch`"},
    {"--print-env", "better: what a worker would see; also with `--json`", ""},
    {"--print-completion", "same, without shtab; no tcsh", ""},
    {"--install-links",
     "better: hlaunch [in its place](install.md#in-the-place-of-torchrun-and-mpirun)",
     "better: the same"},
    {"--install-copies", "better: any [image](kubernetes.md#any-image) runs hlaunch", ""},
    {"--version", "better", "same"},
    {"--help", "same", "same"},
};

}  // namespace

absl::Span<const OptionPeer> OptionPeers() { return kPeers; }

}  // namespace hlaunch
