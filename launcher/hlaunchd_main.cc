// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "absl/strings/string_view.h"
#include "agent/workers/process/lack.h"
#include "launcher/cluster/daemon/run_daemon.h"
#include "launcher/cluster/head/run_head.h"
#include "launcher/cluster/membership/cluster_word.h"
#include "rendezvous/net/socket/find_host.h"

// hlaunchd, the node daemon of a cluster of the user's own hosts. With the word `head` it is the
// head of the cluster. With `cluster` it carries out `hlaunch cluster`, which execs it.
int main(int argc, char** argv) {
  hlaunch::SayWhatIsLacking();
  hlaunch::ChooseNameServices();
  const absl::string_view word = argc > 1 ? argv[1] : "";
  if (word == "head") return hlaunch::RunHead(argc, argv);
  if (word == "cluster") return hlaunch::RunClusterWord(argc, argv);
  return hlaunch::RunDaemon(argc, argv);
}
