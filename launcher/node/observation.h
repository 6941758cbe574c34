// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/events/event_choice.h"
#include "agent/events/event_hook.h"
#include "agent/output/output_relay.h"
#include "agent/watch/observe/event_log.h"
#include "agent/watch/observe/goodput.h"
#include "agent/watch/observe/metrics_server.h"
#include "agent/watch/observe/node_event.h"
#include "agent/watch/observe/node_metrics.h"
#include "launcher/cli/options/options.h"
#include "launcher/node/service_manager.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Passes what happens to this node to its observers: the event log if --log-dir is given, the
// metrics if --metrics-port is given, and a service manager if there is one. An observer that fails
// to start costs a warning, not the job.
//
// Belongs to the loop's thread. `loop` and `relay` outlive it. It outlives the agent, which calls
// it.
class Observation {
 public:
  // `directory` is for the event log; empty: there is no event log.
  Observation(asio::io_context& loop, const OutputRelay& relay, const Options& options,
              const std::string& directory, const std::string& job_id, const std::string& host);

  // From now on gives `hook` the events that EventChoice selects. `hook` outlives this object.
  void TellOthers(EventHook* hook, bool speaks_first);

  void Tell(const NodeEvent& event);

  const Goodput& goodput() const { return goodput_; }

 private:
  void Pass(const NodeEvent& event);
  std::string NotReady() const;
  void StartLog(const std::string& path);
  void StartServer(asio::io_context& loop, const OutputRelay& relay, const Options& options);

  const Duration longest_stop_;
  ServiceManager manager_;
  std::string doing_;   // What the node does now, in words, whether it has contact or not.
  std::string status_;  // The same, or why it has no contact.
  NodeMetrics metrics_;
  Goodput goodput_{MonotonicClock().Now()};
  EventSource source_;
  std::unique_ptr<EventLog> log_;          // Null if there is none.
  EventHook* hook_ = nullptr;              // Null if there is none.
  std::optional<EventChoice> choice_;      // Selects the events for `hook_`.
  std::unique_ptr<MetricsServer> server_;  // Null if there are no metrics.
};

}  // namespace hlaunch
