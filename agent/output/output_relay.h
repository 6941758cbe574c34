// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/output/log_spec.h"
#include "agent/output/output_lines.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

class LogFile;

// The write ends of one worker's stdout and stderr: hand them to Spawn, then drop them.
struct WorkerOutput {
  UniqueFd out;
  UniqueFd err;
};

// Where one stream goes. A value.
struct StreamRoute {
  bool console = true;                // Our stdout or stderr,
  int console_fd = -1;                // or this in its place; -1: none is.
  std::shared_ptr<LogFile> file;      // Takes every byte unchanged; null: none does.
  std::shared_ptr<LogFile> filtered;  // Takes what `filter` picks; null: nothing does.
  std::optional<LineFilter> filter;   // Set if `filtered` is.
  std::function<void(absl::string_view)> reader = {};  // Sees every byte, too; may be empty.
};

// Where the output of one worker goes. A value.
struct WorkerRoutes {
  // Of its lines on the console, with ${stream} and ${time}, see FillPrefix; empty: every byte
  // passes unchanged, at once, unless `whole_lines`.
  std::string prefix;
  bool whole_lines = false;   // Nothing but whole lines goes to the console.
  bool merge_stderr = false;  // Both streams go to our stdout.
  bool apart = false;         // `rank` is of another world: equal lines of others are not joined.
  int rank = 0;               // Decides the prefix' colour on a terminal.
  std::string job_id;         // Beside round and ranks in systemd's journal.
  uint64_t round = 0;
  StreamRoute out;
  StreamRoute err;
};

// Carries the workers' stdout and stderr to ours and to files: whole lines with the worker's
// prefix, never mixed, and the end of each stderr kept for the report. Never blocks the loop:
// while what a stream goes to blocks, its pipe is not read; what is closed or full only loses
// what it is sent. Where ours is systemd's journal, every line is an entry of it, with the fields
// HLAUNCH_JOB_ID, HLAUNCH_ROUND, HLAUNCH_RANK, HLAUNCH_LOCAL_RANK and HLAUNCH_STREAM.
//
// Belongs to the loop's thread; `loop` outlives it. Workers are named by local rank.
class OutputRelay {
 public:
  // `folding` is of lines with a prefix, while there are several workers.
  //
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<OutputRelay>> Make(asio::io_context& loop, int out_fd = 1,
                                                           int err_fd = 2,
                                                           Folding folding = Folding::kOnTerminal);
  // Drops what ours has not taken: Flush first.
  ~OutputRelay();

  // New pipes for `worker`, in place of those it had; its tail starts empty.
  //
  // Errors: ResourceExhausted - out of descriptors or threads.
  absl::StatusOr<WorkerOutput> Open(int worker, WorkerRoutes routes);

  // The last lines of the worker's stderr, as OutputTail::Text says.
  std::string Tail(int worker) const;

  // More of it, as OutputTail::LongText says: for what stands further up.
  std::string LongTail(int worker) const;

  // Reads what the worker has written until now, without waiting for what still holds its pipes
  // open. Call once it has exited, before Tail.
  void Drain(int worker);

  // Drains, ends the last lines and closes the pipes; who still writes gets SIGPIPE. The tail
  // stays.
  void Close(int worker);

  // Bytes of all workers that were read so far.
  uint64_t bytes_read() const;

  // Blocks until files, our stdout and stderr have taken all, or `deadline`: false then.
  bool Flush(Instant deadline);

 private:
  class Impl;
  explicit OutputRelay(std::shared_ptr<Impl> impl);
  // Owned by this object; a handler in the loop holds it while it runs.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
