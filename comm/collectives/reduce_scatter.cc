// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Each rank reduces its part of all ranks' data (parts.h): 1 step; n - 1 messages and s (n-1)/n
// bytes out and in for each, where s is the size of all parts.

#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "comm/reduce/reduce_kernels.h"

namespace hlaunch {

absl::Status RunReduceScatter(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  const size_t element = ElementSize(call.type), count = call.from.size() / element;
  const SizeList offsets =
      call.give.empty() ? Offsets(comm.size(), count / comm.size()) : Offsets(call.give);
  std::unique_ptr<std::byte[]> multiplied;
  const std::byte* from = call.from.data();
  if (call.op == ReduceOp::kPremulSum) {
    multiplied = std::make_unique_for_overwrite<std::byte[]>(call.from.size());
    Multiply(call.type, multiplied.get(), from, count, call.factor);
    from = multiplied.get();
  }
  const double divisor = call.op == ReduceOp::kAvg ? comm.size() : 1;
  return ReduceParts(comm, call.type, call.op, divisor, from, offsets, call.into.data());
}

}  // namespace hlaunch
