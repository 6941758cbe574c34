// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/collectives/communicator.h"

#include <algorithm>

namespace hlaunch {

std::span<std::byte> Scratch::Get(size_t size) {
  if (size > size_) {
    bytes_.reset();
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
    size_ = size;
  }
  return {bytes_.get(), size};
}

Communicator Communicator::Among(const std::vector<Rank>& ranks) const {
  Communicator among = *this;
  among.ranks_ = &ranks;
  among.size_ = static_cast<int>(ranks.size());
  among.rank_ =
      static_cast<Rank>(std::find(ranks.begin(), ranks.end(), Real(rank_)) - ranks.begin());
  return among;
}

}  // namespace hlaunch
