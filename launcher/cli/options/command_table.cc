// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/command_table.h"

namespace hlaunch {
namespace {

constexpr bool kAlsoTorchrun = true;
constexpr bool kNotTorchrun = false;  // Under the name torchrun, such a word is a script.

// Rows of several commands.
constexpr OptionRow kJson = {"", "", "--json", "", "print one JSON object", nullptr};
constexpr OptionRow kTokenToAsk = {
    "",
    "",
    "--token-file",
    "FILE",
    "its secret (HLAUNCH_TOKEN_FILE, HLAUNCH_TOKEN, ~/.config/hlaunch/token)",
    nullptr};
constexpr OptionRow kTlsToAsk = {
    "",     "", "--tls", "on|off", "off: as the rendezvous does, encrypt nothing (HLAUNCH_TLS, on)",
    nullptr};
constexpr OptionRow kTlsCert = {
    "",
    "",
    "--tls-cert",
    "FILE",
    "this host's own certificate, in PEM, instead of a token (HLAUNCH_TLS_CERT)",
    nullptr};
constexpr OptionRow kTlsKey = {
    "", "", "--tls-key", "FILE", "the certificate's key (HLAUNCH_TLS_KEY)", nullptr};
constexpr OptionRow kTlsCa = {
    "", "", "--tls-ca", "FILE", "trusted CA certificates (HLAUNCH_TLS_CA)", nullptr};
constexpr OptionRow kJobsRendezvous = {
    "", "", "--rdzv-endpoint", "HOST[:PORT]", "the job's rendezvous (port 29400)", nullptr};
constexpr OptionRow kAnswerTimeout = {
    "", "", "--timeout", "S", "wait up to S seconds for answers (default 10, at most 60)", nullptr};
constexpr OptionRow kHelp = {"", "-h", "--help", "", "print this text", nullptr};

// The options of the commands. The parser of each command reads the values.
const OptionRow kStatus[] = {
    {"", "", "--rdzv-endpoint", "HOST[:PORT]", "the rendezvous to ask (port 29400)", nullptr},
    {"", "-w", "--watch", "", "refresh until you press q", nullptr},
    {"", "", "--html", "FILE", "write what there is to see now as one HTML file, for a ticket",
     nullptr},
    kJson,
    kTokenToAsk,
    kTlsToAsk,
    kTlsCert,
    kTlsKey,
    kTlsCa,
    kHelp,
};

const OptionRow kWhy[] = {
    kJobsRendezvous, {"", "", "--rank", "LIST", "ask these ranks alone, as in 0-3,7", nullptr},
    kAnswerTimeout,  kJson,
    kTokenToAsk,     kTlsToAsk,
    kTlsCert,        kTlsKey,
    kTlsCa,          kHelp,
};

const OptionRow kStacks[] = {
    kJobsRendezvous,
    {"", "", "--rank", "LIST", "show these ranks alone, as in 0-3,7", nullptr},
    {"", "", "--native", "", "with the frames of C, by py-spy or gdb, which stop a rank to look",
     nullptr},
    kAnswerTimeout,
    kJson,
    kTokenToAsk,
    kTlsToAsk,
    kTlsCert,
    kTlsKey,
    kTlsCa,
    kHelp,
};

const OptionRow kDrain[] = {
    kJobsRendezvous,
    {"", "", "--reason", "TEXT", "why, for everybody who looks at the job", nullptr},
    {"", "", "--within", "S", "it will be gone after S seconds, for everybody who looks at the job",
     nullptr},
    {"", "", "--deadline", "S",
     "of a host of the cluster: its jobs are asked to move, and stopped after S seconds (they "
     "stay)",
     nullptr},
    kTokenToAsk,
    kTlsToAsk,
    kTlsCert,
    kTlsKey,
    kTlsCa,
    kHelp,
};

const OptionRow kUndrain[] = {
    kJobsRendezvous, kTokenToAsk, kTlsToAsk, kTlsCert, kTlsKey, kTlsCa, kHelp,
};

const OptionRow kAttach[] = {
    {"", "", "--tail", "N|all", "start with the last N lines (default 10)", nullptr},
    kHelp,
};

const OptionRow kLogs[] = {
    {"", "-f", "--follow", "", "and go on until the job ends", nullptr},
    {"", "", "--rank", "LIST", "the lines of these ranks alone, as in 0-3,7", nullptr},
    {"", "", "--node", "NODE", "of a job of the cluster: of this host or node rank alone", nullptr},
    {"", "", "--since", "TIME", "nothing older: 10m, 2h, or 2026-11-25T16:41 in UTC", nullptr},
    {"", "", "--tail", "N|all", "start with the last N lines (default all)", nullptr},
    {"", "-t", "--timestamps", "", "the time stands before each line", nullptr},
    {"", "", "--json", "", "print a JSON object for each line", nullptr},
    kHelp,
};

const OptionRow kStop[] = {
    {"", "", "--grace", "S", "kill what has not ended after S seconds (as the job has it)",
     nullptr},
    kHelp,
};

const OptionRow kKill[] = {kHelp};

const OptionRow kPs[] = {
    {"", "-a", "--all", "", "the jobs of all users", nullptr},
    {"", "-e", "--ended", "", "also those that have ended", nullptr},
    kJson,
    kHelp,
};

const OptionRow kNodes[] = {kJson, kHelp};

const OptionRow kTop[] = {{"", "-a", "--all", "", "the jobs of all users", nullptr}, kHelp};

const OptionRow kDevices[] = {
    kJson,
    {"", "", "--sysroot", "DIR", "read the machine that DIR/sys, DIR/proc and DIR/dev describe",
     nullptr},
    kHelp,
};

const OptionRow kCheck[] = {
    {"", "", "--full", "", "measure for longer, also memory and the log directory's disk", nullptr},
    {"", "", "--devices", "KIND[:N]", "require N working devices, e.g. hpu:8 (default 1)", nullptr},
    {"", "", "--log-dir", "DIR", "try to write there (TMPDIR, or /tmp)", nullptr},
    {"", "", "--master", "HOST", "this name must have an address", nullptr},
    kJson,
    {"", "", "--lines", "", "print a JSON object for each check, as it ends", nullptr},
    {"", "", "--join", "WHERE", "MASTER:PORT,ROUND,NODE_RANK,NODES,HOST: with all nodes of a round",
     nullptr},
    {"", "", "--watch", "S", "every S seconds, print what changes as lines; until it is killed",
     nullptr},
    {"", "", "--sysroot", "DIR", "read the machine that DIR/sys, DIR/proc and DIR/dev describe",
     nullptr},
    kHelp,
};

const OptionRow kToken[] = {
    {"", "", "--file", "FILE", "keep it there (~/.config/hlaunch/token)", nullptr},
    {"", "", "--new", "", "replace a token that is there: its jobs take no more nodes", nullptr},
    {"", "", "--print", "", "print a new token and keep none", nullptr},
    {"", "", "--for-job", "ID", "print a token that is good for this job of a service alone",
     nullptr},
    {"", "", "--for-page", "", "print the password that status pages ask for", nullptr},
    {"", "", "--token-file", "FILE",
     "the token for --for-job and --for-page (HLAUNCH_TOKEN_FILE, HLAUNCH_TOKEN, "
     "~/.config/hlaunch/token)",
     nullptr},
    kHelp,
};

const OptionRow kCluster[] = {
    {"", "", "--listen", "PORT|HOST:PORT", "init: where hosts find the head (29401, all addresses)",
     nullptr},
    {"", "", "--name", "HOST", "init, join: this host's name in the cluster (its own)", nullptr},
    {"", "", "--token", "TOKEN", "join: what `hlaunch cluster token` prints on the head", nullptr},
    {"", "", "--token-file", "FILE", "join: a file with the token; - is stdin", nullptr},
    {"", "", "--end-cluster", "", "leave: also if this host is the head, for all hosts", nullptr},
    {"", "", "--json", "", "status: print one JSON object", nullptr},
    kHelp,
};

const OptionRow kRun[] = {kHelp};

const OptionRow kAdopt[] = {
    {"", "", "--links", "NAME,...|none",
     "which names become links to hlaunch in the environment's bin/ (torchrun)", nullptr},
    {"", "", "--undo", "", "take all of it back", nullptr},
    {"", "", "--show", "", "say who runs a job that is started in this environment", nullptr},
    kHelp,
};

const OptionRow kService[] = {
    {"", "", "--listen", "PORT|HOST:PORT", "where agents find it ([::]:29400, all addresses)",
     nullptr},
    {"", "", "--state", "file://DIR|etcd://HOSTS|k8s://[NAMESPACE]",
     "keeps jobs there: they survive its restart", nullptr},
    {"", "", "--state-ca", "FILE", "etcd over TLS, or --state-api: whose certificates are believed",
     nullptr},
    {"", "", "--state-cert", "FILE", "the certificate that etcd asks for", nullptr},
    {"", "", "--state-key", "FILE", "its key", nullptr},
    {"", "", "--state-user-file", "FILE", "holds NAME:PASSWORD, for an etcd that asks for them",
     nullptr},
    {"", "", "--state-api", "URL",
     "Kubernetes' API server, or a proxy on this host, for a service outside of pods", nullptr},
    {"", "", "--state-token-file", "FILE", "the token for it", nullptr},
    {"", "", "--token-file", "FILE",
     "secret that nodes must know (HLAUNCH_TOKEN_FILE, HLAUNCH_TOKEN, ~/.config/hlaunch/token)",
     nullptr},
    {"", "", "--tls", "on|off",
     "off: nodes prove that they have the token, and nothing is encrypted (HLAUNCH_TLS, on)",
     nullptr},
    kTlsCert,
    kTlsKey,
    kTlsCa,
    {"", "", "--max-jobs", "N", "most jobs at once (1000)", nullptr},
    {"", "", "--metrics-port", "PORT|ADDR:PORT",
     "serve /metrics, /healthz and /readyz, on loopback unless ADDR is given", nullptr},
    {"", "", "--status-page", "PORT|ADDR:PORT",
     "serve pages that show the jobs, on loopback unless ADDR is given", nullptr},
    {"", "-v", "--verbose", "", "say more", nullptr},
    {"", "-q", "--quiet", "", "say only warnings and errors", nullptr},
    {"", "-V", "--version", "", "print the version; with -v also what is inside", nullptr},
    kHelp,
};

constexpr CommandRow kCommandRows[] = {
    {"ps", "[-a] [--json] [JOB]", "list your jobs of the cluster, and those on this host",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"nodes", "[--json]", "show the cluster's hosts, and what is free on them",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"top", "[JOB]", "watch the cluster, your jobs on this host, or one job",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"status", "[JOB] [--rdzv-endpoint HOST[:PORT]]", "say where a job stands and why",
     CommandProgram::kAgent, kNotTorchrun},
    {"why", "[JOB] [--rdzv-endpoint HOST[:PORT]]",
     "say where a job's ranks are and who holds them up", CommandProgram::kAgent, kNotTorchrun},
    {"stacks", "[JOB] [--rdzv-endpoint HOST[:PORT]]", "show the stacks of a job's ranks",
     CommandProgram::kAgent, kNotTorchrun},
    {"drain", "[JOB] NODE", "take a node out of a job, or a host out of the cluster",
     CommandProgram::kAgent, kNotTorchrun},
    {"undrain", "[JOB] NODE", "take back a drain", CommandProgram::kAgent, kNotTorchrun},
    {"attach", "[JOB]", "follow a detached job, or one of the cluster", CommandProgram::kHlaunch,
     kNotTorchrun},
    {"logs", "[JOB] [-f]", "print the output of a detached job, or of one of the cluster",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"stop", "[JOB]", "end a detached job, or one of the cluster, on all of its hosts",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"kill", "[JOB]", "the same at once, with SIGKILL", CommandProgram::kHlaunch, kNotTorchrun},
    {"devices", "[--json]", "show this node's devices", CommandProgram::kHlaunch, kAlsoTorchrun},
    {"check", "[--json]", "check whether this node is fit for a job", CommandProgram::kHlaunch,
     kAlsoTorchrun},
    {"doctor", "[--json] [options]", "check all nodes of a job without the job",
     CommandProgram::kHlaunch, kAlsoTorchrun},
    {"token", "[options]", "make the secret that the nodes of your jobs share",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"cluster", "init|join|token|throw-out|leave|status",
     "make a cluster of your own hosts, and say which belong to it", CommandProgram::kDaemon,
     kNotTorchrun},
    {"run", "PROGRAM [ARGS]", "run a program whose jobs torch's agent would run by hlaunch",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"adopt", "[options]", "do the same for all programs of a Python environment",
     CommandProgram::kHlaunch, kNotTorchrun},
    {"help", "[COMMAND]", "print this text, or that of a command", CommandProgram::kHlaunch,
     kNotTorchrun},
    {"version", "", "print the version", CommandProgram::kHlaunch, kNotTorchrun},
    // A keeper whose agent was killed runs this to report the node's death.
    {"--death-report", "", "", CommandProgram::kAgent, kAlsoTorchrun},
    // An agent starts this in place of a worker that another task of its node runs.
    {"--in-task", "ADDRESS PROGRAM", "", CommandProgram::kHlaunch, kAlsoTorchrun},
    // An agent that carries hlaunch-pmix in itself starts this.
    {"--carried-pmix", "OPTIONS", "", CommandProgram::kHlaunch, kAlsoTorchrun},
    // --hosts starts this on each host.
    {"agent", "--stdin", "", CommandProgram::kHlaunch, kNotTorchrun},
    // hlaunchd starts this as the user of a job.
    {"hold", "--stdin", "", CommandProgram::kHlaunch, kNotTorchrun},
};

}  // namespace

absl::Span<const OptionRow> StatusOptionRows() { return kStatus; }
absl::Span<const OptionRow> WhyOptionRows() { return kWhy; }
absl::Span<const OptionRow> StacksOptionRows() { return kStacks; }
absl::Span<const OptionRow> DrainOptionRows() { return kDrain; }
absl::Span<const OptionRow> UndrainOptionRows() { return kUndrain; }
absl::Span<const OptionRow> AttachOptionRows() { return kAttach; }
absl::Span<const OptionRow> LogsOptionRows() { return kLogs; }
absl::Span<const OptionRow> StopOptionRows() { return kStop; }
absl::Span<const OptionRow> KillOptionRows() { return kKill; }
absl::Span<const OptionRow> PsOptionRows() { return kPs; }
absl::Span<const OptionRow> NodesOptionRows() { return kNodes; }
absl::Span<const OptionRow> TopOptionRows() { return kTop; }
absl::Span<const OptionRow> DevicesOptionRows() { return kDevices; }
absl::Span<const OptionRow> CheckOptionRows() { return kCheck; }
absl::Span<const OptionRow> TokenOptionRows() { return kToken; }
absl::Span<const OptionRow> ClusterOptionRows() { return kCluster; }
absl::Span<const OptionRow> RunOptionRows() { return kRun; }
absl::Span<const OptionRow> AdoptOptionRows() { return kAdopt; }
absl::Span<const OptionRow> ServiceOptionRows() { return kService; }

absl::Span<const CommandRow> CommandTable() { return kCommandRows; }

const CommandRow* FindCommand(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const bool as_torchrun = ProgramName(argv[0]) == "torchrun";
  for (const CommandRow& row : kCommandRows) {
    if (absl::string_view(argv[1]) == row.word && (row.for_torchrun || !as_torchrun)) return &row;
  }
  return nullptr;
}

std::string ProgramName(absl::string_view argv0) {
  const absl::string_view name = argv0.substr(argv0.rfind('/') + 1);
  return name == "torchrun" ? "torchrun" : "hlaunch";
}

}  // namespace hlaunch
