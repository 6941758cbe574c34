// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace hlaunch {

// Returns the unit by which clients are counted: an IPv4 address, or the 64-bit network of an IPv6
// address, since whoever has one address of such a network has all of them. Pure.
std::string CountedAs(const std::string& literal);

// Counts how many of a kind there are at the same time, in all and from each address.
//
// Belongs to one thread.
class CountByAddress {
 public:
  CountByAddress(size_t most, size_t most_of_one) : most_(most), most_of_one_(most_of_one) {}

  // Counts one more from `literal`. Returns false, and does not count it, if there are enough.
  bool Admit(const std::string& literal);
  // Uncounts one that Admit has counted.
  void Leave(const std::string& literal);

  size_t size() const { return size_; }
  bool full() const { return size_ == most_; }

 private:
  const size_t most_, most_of_one_;
  size_t size_ = 0;
  absl::flat_hash_map<std::string, size_t> of_one_;
};

}  // namespace hlaunch
