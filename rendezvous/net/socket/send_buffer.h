// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

// Bytes that are to be sent on a non-blocking socket. Belongs to one thread. It has no limit: the
// owner bounds it by not reading any more while size() is over a limit. An empty buffer keeps at
// most 4 KiB of memory.
class SendBuffer {
 public:
  // `sum` counts the bytes that all buffers with the same `sum` hold, and must outlive them; null
  // if it is not needed.
  explicit SendBuffer(size_t* sum = nullptr) : sum_(sum) {}
  ~SendBuffer();
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;

  // Append here what is to be sent, then call Recount.
  std::string& text() { return text_; }
  // Brings the sum up to date.
  void Recount();

  size_t size() const { return text_.size() - sent_; }  // Bytes that have not been sent.

  // Sends what the socket takes. Returns false, with the reason in errno, if the other end is gone.
  bool SendTo(int fd);

  void Clear();

 private:
  size_t* const sum_;
  std::string text_;  // Its first `sent_` bytes have been sent.
  size_t sent_ = 0;
  size_t counted_ = 0;  // Its part of the sum.
};

}  // namespace hlaunch
