// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

// Bytes on their way out of a socket that does not block. Belongs to one thread. How many it may
// hold is its owner's to decide: an owner that reads no more while size() is over a limit bounds
// it. One that is empty keeps at most 4 KiB of memory.
class SendBuffer {
 public:
  // `sum` counts the bytes that all buffers with the same `sum` hold, and outlives them; null if
  // nobody asks for it.
  explicit SendBuffer(size_t* sum = nullptr) : sum_(sum) {}
  ~SendBuffer();
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;

  // What is to be sent is appended here. Call Recount after that.
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
