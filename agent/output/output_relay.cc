// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/output/console.h"
#include "agent/output/folded_console.h"
#include "agent/output/log_file.h"
#include "agent/output/output_sink.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/system_journal.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr size_t kReadSize = 256 * 1024;
// Larger than the kernel's 64 KiB: large output needs fewer reads, and small output costs nothing
// more. Far below the 64 MiB that all pipes of one user may take.
constexpr int kPipeSize = 256 * 1024;
// A pipe never holds more, unless root made it larger. The limit is needed because a grandchild may
// write for ever.
constexpr size_t kMaxDrain = 1024 * 1024;
// How long the journal may take to read what it was sent.
constexpr Duration kJournalPatience = std::chrono::seconds(1);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no pipe for a worker's output: ", std::strerror(errno)));
  }
  // Only the read end: the worker's end is another open file description and blocks, as programs
  // expect.
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeSize);  // If this fails, the size stays as it is.
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

absl::Status Assign(UniqueFd fd, asio::posix::stream_descriptor* descriptor) {
  asio::error_code error;
  descriptor->assign(fd.get(), error);
  if (error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch a worker's output: ", error.message()));
  }
  fd.Release();
  return absl::OkStatus();
}

}  // namespace

class OutputRelay::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, int out_fd, int err_fd, Folding folding, Duration patience,
       std::unique_ptr<OutputSink> console)
      : loop_(loop),
        patience_(patience),
        console_(std::move(console)),
        folded_([this](int fd, std::string bytes) { Push(fd, std::move(bytes)); }),
        fold_timer_(loop),
        partial_timer_(loop),
        buffer_(std::make_unique_for_overwrite<char[]>(kReadSize)) {
    const char* journal_stream = std::getenv(kEnvJournalStream);
    out_ = {out_fd, ConsoleStyleOf(out_fd), nullptr, IsJournal(out_fd, journal_stream)};
    err_ = {err_fd, ConsoleStyleOf(err_fd), nullptr, IsJournal(err_fd, journal_stream)};
    if (out_.is_journal || err_.is_journal) journal_ = OpenJournal();
    // If both are terminals, they are assumed to be the same one; a wrong guess does no harm.
    const auto line = std::make_shared<TerminalLine>();
    if (out_.style.terminal) out_.line = line;
    if (err_.style.terminal) err_.line = line;
    for (Console* ours : {&out_, &err_}) {
      ours->folds =
          folding == Folding::kAlways || (folding == Folding::kOnTerminal && ours->style.terminal);
    }
  }

  absl::StatusOr<WorkerOutput> Open(int worker, WorkerRoutes routes) {
    if (files_ == nullptr && (NeedsFiles(routes.out) || NeedsFiles(routes.err))) {
      HLAUNCH_ASSIGN_OR_RETURN(files_, OutputSink::Make(loop_));
    }
    HLAUNCH_ASSIGN_OR_RETURN(Pipe out, MakePipe());
    HLAUNCH_ASSIGN_OR_RETURN(Pipe err, MakePipe());
    Worker fresh;
    fresh.tail = std::make_shared<OutputTail>();
    const Console out_console = ConsoleOf(out_, routes.out);
    const Console err_console = routes.merge_stderr ? out_console : ConsoleOf(err_, routes.err);
    fresh.streams = {MakeStream(out_console, worker, routes, std::move(routes.out), nullptr),
                     MakeStream(err_console, worker, routes, std::move(routes.err), fresh.tail)};
    HLAUNCH_RETURN_IF_ERROR(Assign(std::move(out.read_end), &fresh.streams[0]->fd));
    HLAUNCH_RETURN_IF_ERROR(Assign(std::move(err.read_end), &fresh.streams[1]->fd));
    Close(worker);
    for (const auto& stream : fresh.streams) Await(stream);
    workers_[worker] = std::move(fresh);
    return WorkerOutput{std::move(out.write_end), std::move(err.write_end)};
  }

  uint64_t bytes_read() const { return bytes_read_; }

  std::string Tail(int worker) const {
    const auto found = workers_.find(worker);
    return found == workers_.end() ? "" : found->second.tail->Text();
  }

  std::string LongTail(int worker) const {
    const auto found = workers_.find(worker);
    return found == workers_.end() ? "" : found->second.tail->LongText();
  }

  void Drain(int worker) {
    const auto found = workers_.find(worker);
    if (found == workers_.end()) return;
    for (const auto& stream : found->second.streams) {
      size_t drained = 0;
      while (stream->fd.is_open() && drained < kMaxDrain) {
        const size_t n = ReadOnce(*stream);
        if (n == 0) break;
        drained += n;
      }
    }
  }

  void Close(int worker) {
    Drain(worker);
    const auto found = workers_.find(worker);
    if (found == workers_.end()) return;
    for (const auto& stream : found->second.streams) End(*stream);
    found->second.streams.clear();
  }

  bool Flush(Instant deadline) {
    folded_.Show();
    for (auto& [fd, stream] : std::exchange(partial_, {})) {
      stream->cutter.HidePending();
      console_->writer().Push(fd, "\n");
    }
    for (const Console* console : {&out_, &err_}) {
      if (console->line == nullptr || !console->line->holds_bar) continue;
      console->line->holds_bar = false;
      console_->writer().Push(console->fd, "\n");  // Keeps the last state of a progress bar.
    }
    const bool files_done = files_ == nullptr || files_->writer().WaitEmpty(deadline);
    const bool console_done = console_->writer().WaitEmpty(deadline);
    if (journal_.valid()) {
      AwaitJournal(journal_.get(), std::min(deadline - MonotonicClock().Now(), kJournalPatience));
    }
    return console_done && files_done;
  }

 private:
  // Our stdout or stderr.
  struct Console {
    int fd = -1;
    ConsoleStyle style;
    std::shared_ptr<TerminalLine> line;  // Shared with cutters; null if this is no terminal.
    bool is_journal = false;
    bool folds = false;
  };
  struct Stream {
    Stream(asio::io_context& loop, LineCutter the_cutter) : fd(loop), cutter(the_cutter) {}
    asio::posix::stream_descriptor fd;
    LineCutter cutter;
    bool shows_partial = false;            // Lines without an end are shown after a while.
    bool keeps_end = false;                // A last line without an end gets none.
    std::optional<Instant> partial_due;    // Then the line that waits for its end is shown.
    std::string timed_prefix;              // The cutter's, with ${time}; empty if it never changes.
    std::optional<JournalCutter> journal;  // If set, replaces `cutter` and `console_fd`.
    int console_fd = -1;
    bool folds = false;  // Its lines may go to our stream through `folded_`.
    LineSource source;   // Its name in `folded_`.
    StreamRoute route;
    std::shared_ptr<OutputTail> tail;  // Shared with the worker; null for stdout.
  };
  // A stream is owned by its worker and by the handler that waits for it.
  struct Worker {
    std::vector<std::shared_ptr<Stream>> streams;
    std::shared_ptr<OutputTail> tail;
  };

  static bool NeedsFiles(const StreamRoute& route) {
    return route.file != nullptr || route.filtered != nullptr;
  }

  // Returns `ours`, or the descriptor that `route` uses instead, which nothing else writes to.
  static Console ConsoleOf(const Console& ours, const StreamRoute& route) {
    if (route.console_fd < 0) return ours;
    return {route.console_fd, ConsoleStyleOf(route.console_fd), nullptr, false, false};
  }

  std::shared_ptr<Stream> MakeStream(const Console& console, int worker, const WorkerRoutes& routes,
                                     StreamRoute route, std::shared_ptr<OutputTail> tail) {
    const absl::string_view name = tail == nullptr ? "stdout" : "stderr";
    const bool colour = console.style.colour && !routes.prefix.empty();
    const bool timed = HasTime(routes.prefix);
    const std::string plain = FillPrefix(routes.prefix, name, "${time}");
    const std::string prefix = colour ? Coloured(plain, routes.rank) : plain;
    auto stream = std::make_shared<Stream>(loop_, LineCutter(prefix, console.line));
    if (routes.whole_lines) stream->cutter.AlwaysCut();
    if (timed) stream->timed_prefix = prefix;
    stream->shows_partial = !routes.prefix.empty() && !routes.whole_lines;
    // Not on stderr, where lines of our own follow.
    stream->keeps_end = routes.prefix.empty() && console.line == nullptr && console.fd == out_.fd;
    stream->console_fd = console.fd;
    // Lines of two streams, or with a time, are never equal.
    stream->folds =
        console.folds && !routes.prefix.empty() && !timed && !routes.merge_stderr && !routes.apart;
    stream->source = {routes.rank, console.fd};
    if (stream->folds) folded_.SetLook(stream->source, {prefix, colour, console.line});
    if (console.is_journal && journal_.valid()) {
      stream->journal.emplace(timed ? "" : plain,  // The journal adds the time itself.
                              JournalFields{{"PRIORITY", "6"},
                                            {"SYSLOG_IDENTIFIER", program_invocation_short_name},
                                            {"HLAUNCH_JOB_ID", routes.job_id},
                                            {"HLAUNCH_ROUND", absl::StrCat(routes.round)},
                                            {"HLAUNCH_RANK", absl::StrCat(routes.rank)},
                                            {"HLAUNCH_LOCAL_RANK", absl::StrCat(worker)},
                                            {"HLAUNCH_STREAM", std::string(name)}});
    }
    stream->route = std::move(route);
    stream->tail = std::move(tail);
    return stream;
  }

  // Returns a sink that has no room for more of this stream; null if all have.
  OutputSink* FullSink(const StreamRoute& route) const {
    if (route.console && console_->writer().full()) return console_.get();
    if (NeedsFiles(route) && files_->writer().full()) return files_.get();
    return nullptr;
  }

  void Await(const std::shared_ptr<Stream>& stream) {
    if (!stream->fd.is_open()) return;
    if (OutputSink* full = FullSink(stream->route); full != nullptr) {
      full->AwaitRoom([weak = weak_from_this(), stream] {
        if (const std::shared_ptr<Impl> self = weak.lock()) self->Await(stream);
      });
      return;
    }
    stream->fd.async_wait(asio::posix::stream_descriptor::wait_read,
                          [weak = weak_from_this(), stream](const asio::error_code& error) {
                            const std::shared_ptr<Impl> self = weak.lock();
                            if (error || self == nullptr || !stream->fd.is_open()) return;
                            self->ReadOnce(*stream);
                            self->Await(stream);
                          });
  }

  void PushEntries(std::vector<std::string> entries) {
    for (std::string& entry : entries) {
      console_->writer().PushWhole(journal_.get(), std::move(entry));
    }
  }

  // Both of our streams may lead to one terminal.
  int PlaceOf(int fd) const { return fd == err_.fd && err_.line != nullptr ? out_.fd : fd; }

  // Pushes what `from` has written; null: several streams. If another stream's line without an end
  // was shown there last, it ends here, and is shown once more when it is whole.
  void Push(int fd, std::string bytes, Stream* from = nullptr) {
    if (bytes.empty()) return;
    if (const auto shown = partial_.find(PlaceOf(fd)); shown != partial_.end()) {
      if (shown->second != from) {
        shown->second->cutter.HidePending();
        bytes.insert(0, "\n");
      }
      partial_.erase(shown);
    }
    if (unended_.erase(fd) != 0) bytes.insert(0, "\n");
    console_->writer().Push(fd, std::move(bytes));
    if (from != nullptr && from->cutter.shows_pending()) partial_[PlaceOf(fd)] = from;
  }

  void AwaitPartial(Stream& stream, absl::string_view bytes) {
    stream.partial_due.reset();
    if (!stream.shows_partial || bytes.back() == '\n' || bytes.back() == '\r') return;
    stream.partial_due = RoughNow() + patience_;
    ArmPartial();
  }

  void ArmPartial() {
    std::optional<Instant> next;
    for (const auto& [number, worker] : workers_) {
      for (const auto& stream : worker.streams) {
        if (stream->partial_due)
          next = std::min(next.value_or(Instant::max()), *stream->partial_due);
      }
    }
    if (!next || std::exchange(awaits_partial_, true)) return;
    partial_timer_.expires_at(*next);
    partial_timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const std::shared_ptr<Impl> self = weak.lock();
      if (error || self == nullptr) return;
      self->awaits_partial_ = false;
      self->ShowPartial(MonotonicClock().Now());
      self->ArmPartial();
    });
  }

  void ShowPartial(Instant now) {
    for (const auto& [number, worker] : workers_) {
      for (const auto& stream : worker.streams) {
        if (!stream->partial_due || now < *stream->partial_due) continue;
        stream->partial_due.reset();
        if (stream->folds) {
          const std::string held = folded_.TakeOver(stream->source);
          Push(stream->console_fd, stream->cutter.Feed(held), stream.get());
        }
        SetTime(*stream);
        Push(stream->console_fd, stream->cutter.ShowPending(), stream.get());
      }
    }
  }

  // Lines that end from here on get the current time.
  static void SetTime(Stream& stream) {
    if (stream.timed_prefix.empty()) return;
    stream.cutter.SetPrefix(FillPrefix(stream.timed_prefix, "", TimeText(WallMillis())));
  }

  // Folds lines if there are several workers. A progress bar is not folded, up to the end of its
  // line.
  void Show(Stream& stream, absl::string_view bytes) {
    if (stream.journal) return PushEntries(stream.journal->Feed(bytes));
    SetTime(stream);
    AwaitPartial(stream, bytes);
    if (!stream.folds) return Push(stream.console_fd, stream.cutter.Feed(bytes), &stream);
    const bool lines = stream.cutter.at_line_start() && bytes.find('\r') == bytes.npos;
    if (lines && workers_.size() > 1) {
      folded_.Add(stream.source, bytes, MonotonicClock().Now());
      return AwaitFolded();
    }
    std::string all = folded_.TakeOver(stream.source);
    all.append(bytes.data(), bytes.size());
    Push(stream.console_fd, stream.cutter.Feed(all), &stream);
  }

  // Shows the lines in `folded_` once they are due.
  void AwaitFolded() {
    if (!folded_.due() || std::exchange(awaits_folded_, true)) return;
    fold_timer_.expires_at(*folded_.due());
    fold_timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const std::shared_ptr<Impl> self = weak.lock();
      if (error || self == nullptr) return;
      self->awaits_folded_ = false;
      const std::optional<Instant> due = self->folded_.due();
      if (due && *due <= MonotonicClock().Now()) self->folded_.Show();
      self->AwaitFolded();
    });
  }

  // Returns how many bytes were read; 0 if none is available or the stream has ended.
  size_t ReadOnce(Stream& stream) {
    const ssize_t n = ::read(stream.fd.native_handle(), buffer_.get(), kReadSize);
    if (n > 0) {
      const absl::string_view bytes(buffer_.get(), static_cast<size_t>(n));
      bytes_read_ += bytes.size();
      if (stream.tail != nullptr) stream.tail->Add(bytes);
      StreamRoute& route = stream.route;
      if (route.console) Show(stream, bytes);
      if (route.file != nullptr) files_->writer().Push(route.file, std::string(bytes));
      if (route.filter) files_->writer().Push(route.filtered, route.filter->Feed(bytes));
      if (route.reader) route.reader(bytes);
      return bytes.size();
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) End(stream);
    return 0;
  }

  void End(Stream& stream) {
    if (!stream.fd.is_open()) return;
    StreamRoute& route = stream.route;
    if (route.console && stream.journal) {
      PushEntries(stream.journal->Finish());
    } else if (route.console) {
      SetTime(stream);
      stream.partial_due.reset();
      const std::string last = stream.cutter.Finish(stream.keeps_end);
      Push(stream.console_fd, last, &stream);
      if (!last.empty() && stream.keeps_end) unended_.insert(stream.console_fd);
      if (stream.folds) folded_.End(stream.source, MonotonicClock().Now());
      if (stream.folds) AwaitFolded();
    }
    if (route.filter) files_->writer().Push(route.filtered, route.filter->Finish());
    asio::error_code ignored;
    stream.fd.close(ignored);
  }

  asio::io_context& loop_;
  const Duration patience_;
  Console out_;
  Console err_;
  UniqueFd journal_;  // Invalid unless one of the two is the journal.
  const std::unique_ptr<OutputSink> console_;
  FoldedConsole folded_;
  asio::steady_timer fold_timer_;  // Armed while `awaits_folded_`.
  bool awaits_folded_ = false;
  asio::steady_timer partial_timer_;  // Armed while `awaits_partial_`.
  bool awaits_partial_ = false;
  // By PlaceOf: the stream whose line without an end was shown there last. Its worker owns it.
  std::map<int, Stream*> partial_;
  // Where the last line of a stream that has ended was shown without an end: what comes next there
  // begins a line.
  std::set<int> unended_;
  std::unique_ptr<OutputSink> files_;     // Made when the first stream goes to a file.
  const std::unique_ptr<char[]> buffer_;  // Not filled first: a silent job never touches it.
  std::map<int, Worker> workers_;
  uint64_t bytes_read_ = 0;
};

absl::StatusOr<std::unique_ptr<OutputRelay>> OutputRelay::Make(asio::io_context& loop, int out_fd,
                                                               int err_fd, Folding folding,
                                                               Duration patience) {
  HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<OutputSink> console, OutputSink::Make(loop));
  return std::unique_ptr<OutputRelay>(new OutputRelay(
      std::make_shared<Impl>(loop, out_fd, err_fd, folding, patience, std::move(console))));
}

OutputRelay::OutputRelay(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputRelay::~OutputRelay() = default;

absl::StatusOr<WorkerOutput> OutputRelay::Open(int worker, WorkerRoutes routes) {
  return impl_->Open(worker, std::move(routes));
}
uint64_t OutputRelay::bytes_read() const { return impl_->bytes_read(); }
std::string OutputRelay::Tail(int worker) const { return impl_->Tail(worker); }
std::string OutputRelay::LongTail(int worker) const { return impl_->LongTail(worker); }
void OutputRelay::Drain(int worker) { impl_->Drain(worker); }
void OutputRelay::Close(int worker) { impl_->Close(worker); }
bool OutputRelay::Flush(Instant deadline) { return impl_->Flush(deadline); }

}  // namespace hlaunch
