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

inline constexpr Duration kPatienceWithLines = std::chrono::milliseconds(500);

// The write ends of one worker's stdout and stderr: pass them to Spawn, then close them.
struct WorkerOutput {
  UniqueFd out;
  UniqueFd err;
};

// Where one stream goes. A value.
struct StreamRoute {
  bool console = true;                                 // Our stdout or stderr.
  int console_fd = -1;                                 // Used instead of ours; -1: not set.
  std::shared_ptr<LogFile> file;                       // Gets every byte unchanged; may be null.
  std::shared_ptr<LogFile> filtered;                   // Gets what `filter` picks; may be null.
  std::optional<LineFilter> filter;                    // Set if `filtered` is.
  std::function<void(absl::string_view)> reader = {};  // Also gets every byte; may be empty.
};

// Where the output of one worker goes. A value.
struct WorkerRoutes {
  // The prefix of its lines on the console, with ${stream} and ${time}, see FillPrefix. Empty:
  // every byte passes unchanged at once, unless `whole_lines`.
  std::string prefix;
  bool whole_lines = false;   // Only whole lines go to the console.
  bool merge_stderr = false;  // Both streams go to our stdout.
  bool apart = false;         // `rank` is of another world: its equal lines are not folded.
  int rank = 0;               // Chooses the prefix's colour on a terminal.
  std::string job_id;         // For systemd's journal, as `rank` and `round`.
  uint64_t round = 0;
  StreamRoute out;
  StreamRoute err;
};

// Carries the workers' stdout and stderr to ours and to files: as whole lines with the worker's
// prefix, never mixed. Keeps the end of each stderr for the report. Never blocks the loop: while a
// destination blocks, the pipes of its streams are not read; a destination that is closed or full
// only loses what it is sent. If our stream is systemd's journal, every line becomes an entry with
// the fields HLAUNCH_JOB_ID, HLAUNCH_ROUND, HLAUNCH_RANK, HLAUNCH_LOCAL_RANK and HLAUNCH_STREAM.
//
// Belongs to the loop's thread; `loop` outlives it. Workers are named by local rank.
class OutputRelay {
 public:
  // `folding` applies to lines with a prefix, while there are several workers. A line that waits
  // longer than `patience` for its end, such as a question, is shown, and later once more if
  // another worker's line came between.
  //
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<OutputRelay>> Make(asio::io_context& loop, int out_fd = 1,
                                                           int err_fd = 2,
                                                           Folding folding = Folding::kOnTerminal,
                                                           Duration patience = kPatienceWithLines);
  // Drops what our streams have not taken: call Flush first.
  ~OutputRelay();

  // Makes new pipes for `worker`, which replace its earlier ones; its tail starts empty.
  //
  // Errors: ResourceExhausted - out of descriptors or threads.
  absl::StatusOr<WorkerOutput> Open(int worker, WorkerRoutes routes);

  // The last lines of the worker's stderr, as OutputTail::Text says.
  std::string Tail(int worker) const;

  // More of it, as OutputTail::LongText says, for a message that stands further up.
  std::string LongTail(int worker) const;

  // Reads what the worker has written until now; does not wait for other processes that hold its
  // pipes open. Call this once the worker has exited, before Tail.
  void Drain(int worker);

  // Drains, ends the last lines and closes the pipes; a process that still writes gets SIGPIPE. The
  // tail stays.
  void Close(int worker);

  // The bytes of all workers read so far.
  uint64_t bytes_read() const;

  // Blocks until files and our streams have taken everything; returns false if `deadline` passes
  // first.
  bool Flush(Instant deadline);

 private:
  class Impl;
  explicit OutputRelay(std::shared_ptr<Impl> impl);
  // Owned by this object; a handler in the loop keeps it alive while the handler runs.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
