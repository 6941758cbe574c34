// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// What a line of mpirun asks for, as far as it has been read. A value.
struct MpirunLine {
  std::vector<std::string> words;  // Options of hlaunch, in the order in which they came.
  std::string ranks;               // Of -n; empty: not given, as all that follow.
  std::string per_node;            // Of -N, or of a placement such as ppr:2:node.
  std::string hosts, hostfile;
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
