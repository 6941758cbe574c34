// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

namespace hlaunch {

// Gives memory back to the kernel that the allocator keeps once a store is nearly empty. It does so
// rarely, because it goes over all memory that is free. Belongs to one thread.
class HeapTrim {
 public:
  // Call it now and then with the bytes that the store takes. Returns whether it has given back
  // what is free.
  bool Note(size_t bytes);

 private:
  size_t most_ = 0;  // What the store took at most since then.
};

}  // namespace hlaunch
