// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

// A piece of a file in tests/rendezvous/streams. A file holds, piece by piece, what real clients
// sent and what PyTorch's own server answered.
struct RecordedPiece {
  size_t connection = 0;
  bool from_client = false;
  std::string bytes;
};

inline std::vector<RecordedPiece> ReadRecordedStream(const std::string& name) {
  std::ifstream file(absl::StrCat(HLAUNCH_STREAMS, "/", name, ".txt"));
  std::vector<RecordedPiece> pieces;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    RecordedPiece piece;
    std::string side;
    std::string hex;
    words >> piece.connection >> side >> hex;
    piece.from_client = side == "C";
    piece.bytes = absl::HexStringToBytes(hex);
    pieces.push_back(std::move(piece));
  }
  HLAUNCH_CHECK(!pieces.empty());
  return pieces;
}

inline std::vector<std::string> RecordedStreamNames() {
  return {"torch-1.13-methods", "torch-1.13-ddp", "torch-2.13-methods", "torch-2.13-ddp",
          "torch-2.13-fsdp"};
}

}  // namespace hlaunch
