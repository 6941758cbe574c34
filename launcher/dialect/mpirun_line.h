// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// What a line of mpirun asks for, as far as it has been read. A value.
struct MpirunLine {
  std::vector<std::string> words;  // Options of hlaunch, in the order in which they came.
  // Values of -x among them that are for this program alone, where there are several.
  std::vector<std::string> own_variables;
  std::string ranks;       // Of -n; empty: not given, as all that follow.
  std::string per_node;    // Of -N, or of a placement such as ppr:2:node, "2:socket".
  std::string per_object;  // Of the latter "socket": what ranks are bound to by itself.
  std::string by_node;     // "--map-by node": what cannot be over several hosts.
  std::string hosts, hostfile;
  std::string app_file;              // It has the programs, a line each.
  std::string rankfile;              // It has the place of each rank.
  std::string bind;                  // A value of --bind.
  std::string cores;                 // Of PE=N: the cores of each rank.
  std::string prefix;                // A value of --log-prefix.
  bool verbose = false;              // hlaunch says more of what it does,
  bool tells = false;                // or at least what it says without a word.
  bool reads_stdin = true;           // Rank 0 reads it, as with mpirun.
  bool every_word = false;           // By mpirun's name, all that it has by itself is wanted too.
  std::vector<std::string> remarks;  // Of words that change nothing here; one line each.
};

}  // namespace hlaunch
