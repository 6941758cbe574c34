// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/event_hook/event_choice.h"
#include "agent/event_hook/event_hook.h"
#include "agent/observe/event_log.h"
#include "agent/observe/goodput.h"
#include "agent/observe/metrics_server.h"
#include "agent/observe/node_event.h"
#include "agent/observe/node_metrics.h"
#include "agent/output/output_relay.h"
#include "launcher/node/service_manager.h"
#include "launcher/options/options.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Those who look on what happens to this node: the event log, where --log-dir names a place for
// it, the metrics, where --metrics-port is given, and a service manager that asks. What cannot be
// had costs a warning, not the job.
//
// Belongs to the loop's thread. `loop` and `relay` outlive it; it outlives the agent, which
// tells it.
class Observation {
 public:
  // `directory`: for the event log; empty: none is kept.
  Observation(asio::io_context& loop, const OutputRelay& relay, const Options& options,
              const std::string& directory, const std::string& job_id, const std::string& host);

  // From now on `hook`, which outlives it, is told what EventChoice lets through.
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
  std::string status_;   // Where the node stands, in words.
  std::string running_;  // The same of the latest round, while it ran undisturbed.
  NodeMetrics metrics_;
  Goodput goodput_{MonotonicClock().Now()};
  EventSource source_;
  std::unique_ptr<EventLog> log_;          // Null: none is kept.
  EventHook* hook_ = nullptr;              // Null: nobody else is told.
  std::optional<EventChoice> choice_;      // Of what it is told.
  std::unique_ptr<MetricsServer> server_;  // Null: nobody asks.
};

}  // namespace hlaunch
