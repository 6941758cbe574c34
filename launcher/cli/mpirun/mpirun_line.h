// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// What a line of mpirun asks for, as far as it has been read. A value.
struct MpirunLine {
  std::vector<std::string> words;  // Options of hlaunch, in the order in which they came.
  // The values of -x among them that are only for this program, if there are several programs.
  std::vector<std::string> own_variables;
  std::string ranks;              // The value of -n; empty: not given, as for all below.
  std::string ranks_word = "-n";  // How that was typed, if hlaunch knows that word as well.
  std::string per_node;           // Of -N, or of a placement such as ppr:2:node: "2:socket".
  // Of -ppn: Hydra goes round the hosts, with so many ranks for each, until all ranks have one.
  bool goes_round = false;
  std::string per_object;  // Its "socket": what ranks are bound to by default.
  bool says_map = false;   // --map-by was typed.
  bool maps_by_node = false;
  std::string by_node;  // "--map-by node", which is refused over several hosts.
  std::string hosts, hostfile;
  // More ranks than a scheduler's job has slots are let be; unset: the line does not say.
  std::optional<bool> oversubscribes;
  bool says_hydras_words = false;    // Of its name or its words, one only Hydra has.
  bool job_decides = false;          // Nothing says where the ranks are, and a job may.
  std::string shell;                 // Runs a command on a host, in place of ssh.
  bool shell_is_default = false;     // It was not typed.
  std::string shell_arguments;       // Its arguments, or those of ssh.
  std::string app_file;              // Has the programs, one per line.
  std::string rankfile;              // Has the place of each rank.
  std::string bind;                  // A value of --bind.
  std::string cores;                 // The N of PE=N: the cores of each rank.
  std::string prefix;                // A value of --log-prefix.
  bool verbose = false;              // hlaunch reports more than usual,
  bool tells = false;                // or at least what it reports by default.
  bool reads_stdin = true;           // Rank 0 reads stdin, as with mpirun.
  bool every_word = false;           // Called as mpirun: its defaults apply too.
  bool in_tasks = false;             // A task of a scheduler calls it, and each task runs a rank.
  std::vector<std::string> remarks;  // On words that change nothing here; one line each.
};

}  // namespace hlaunch
