// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hlaunch {
namespace {

using testing::HasSubstr;

JobPolicy SomePolicy() {
  JobPolicy policy;
  policy.min_nodes = 2;
  policy.max_nodes = 4;
  policy.spares = 1;
  policy.max_restarts = 3;
  policy.join_timeout = std::chrono::seconds(70);
  policy.last_call = std::chrono::seconds(0);
  policy.lease = {std::chrono::milliseconds(250), std::chrono::milliseconds(1500),
                  std::chrono::milliseconds(700)};
  policy.preflight = Preflight::kFull;
  policy.preflight_action = PreflightAction::kFail;
  policy.on_host_loss = HostLoss::kContinue;
  policy.preflight_share = 10;
  policy.max_stuck_restarts = 4;
  policy.restart_window = std::chrono::hours(24);
  policy.restart_pause = std::chrono::seconds(5);
  policy.restart_on = "SIGKILL,node";
  policy.end_on = "2";
  policy.free_on = "75";
  policy.on_join = OnJoin::kNextRound;
  policy.on_loss = OnLoss::kFail;
  policy.grow_interval = std::chrono::seconds(60);
  policy.boundary_limit = std::chrono::seconds(300);
  policy.node_multiple = 2;
  policy.on_partition = PreflightAction::kFail;
  policy.started_nodes = 5;
  return policy;
}

void ExpectEqual(const JobPolicy& a, const JobPolicy& b) {
  EXPECT_EQ(std::tie(a.min_nodes, a.max_nodes, a.spares, a.max_restarts, a.join_timeout,
                     a.last_call, a.lease.lease, a.lease.loss_limit, a.lease.margin, a.preflight,
                     a.preflight_action, a.preflight_share, a.max_stuck_restarts, a.on_host_loss),
            std::tie(b.min_nodes, b.max_nodes, b.spares, b.max_restarts, b.join_timeout,
                     b.last_call, b.lease.lease, b.lease.loss_limit, b.lease.margin, b.preflight,
                     b.preflight_action, b.preflight_share, b.max_stuck_restarts, b.on_host_loss));
  EXPECT_EQ(std::tie(a.restart_window, a.restart_pause, a.restart_on, a.end_on, a.free_on,
                     a.on_join, a.on_loss, a.grow_interval, a.boundary_limit, a.node_multiple,
                     a.on_partition, a.started_nodes),
            std::tie(b.restart_window, b.restart_pause, b.restart_on, b.end_on, b.free_on,
                     b.on_join, b.on_loss, b.grow_interval, b.boundary_limit, b.node_multiple,
                     b.on_partition, b.started_nodes));
}

NodeInfo SomeNode() {
  NodeInfo info;
  info.job_id = "job";
  info.node_id = "node";
  info.incarnation = 0xFFFFFFFFFFFFFFFF;
  info.host = "gpu-01";
  info.pid = 42;
  info.started_ms = 1234567890123;
  info.other_addresses = {"10.1.0.2", "fd00::2"};
  info.nproc = 8;
  info.node_rank = 0;
  info.policy = SomePolicy();
  info.address = "fd00::7";
  return info;
}

WorkerFailure SomeFailure() {
  WorkerFailure failure;
  failure.rank = 9;
  failure.local_rank = 1;
  failure.node_rank = 1;
  failure.host = "gpu-02";
  failure.pid = 77;
  failure.exit_code = 3;
  failure.signal = 9;
  failure.wall_ms = 1700000000123;
  failure.message = "RuntimeError: naïve";
  failure.log_tail = std::string("a\0\xFF b\n", 6);
  failure.traceback = "Traceback\n  File \xFF";
  failure.out_of_memory = true;
  failure.evidence = "the kernel killed it";
  failure.log_file = "/tmp/stderr.log";
  failure.no_restart = true;
  failure.hung = true;
  failure.kind = FailureKind::kWroteLine;
  return failure;
}

void ExpectEqual(const WorkerFailure& a, const WorkerFailure& b) {
  EXPECT_EQ(std::tie(a.rank, a.local_rank, a.node_rank, a.host, a.pid, a.exit_code, a.signal,
                     a.wall_ms, a.message, a.log_tail, a.traceback, a.out_of_memory, a.evidence,
                     a.log_file, a.no_restart, a.hung, a.kind),
            std::tie(b.rank, b.local_rank, b.node_rank, b.host, b.pid, b.exit_code, b.signal,
                     b.wall_ms, b.message, b.log_tail, b.traceback, b.out_of_memory, b.evidence,
                     b.log_file, b.no_restart, b.hung, b.kind));
}

// Returns `message` after its way through the wire format.
template <typename Message>
Message OverTheWire(const Message& message) {
  Message out;
  EXPECT_TRUE(out.ParseFromString(message.SerializeAsString()));
  return out;
}

TEST(Convert, NodeInfoComesThrough) {
  const NodeInfo in = SomeNode();
  const auto out = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(
      std::tie(in.job_id, in.node_id, in.incarnation, in.host, in.pid, in.started_ms,
               in.other_addresses, in.nproc, in.node_rank, in.address, in.answers, in.voter_port),
      std::tie(out->job_id, out->node_id, out->incarnation, out->host, out->pid, out->started_ms,
               out->other_addresses, out->nproc, out->node_rank, out->address, out->answers,
               out->voter_port));
  ExpectEqual(in.policy, out->policy);
  EXPECT_EQ(out->route_address, "");
}

// Of a release that does not know the field, and of a later one that knows more kinds.
TEST(Convert, AKindOfFailureThatIsNotKnownIsAnyOther) {
  for (const int kind : {0, 1, 1000}) {
    v1::WorkerFailure message = ToProto(SomeFailure());
    message.set_kind(static_cast<v1::FailureKind>(kind));
    EXPECT_EQ(FromProto(OverTheWire(message))->kind, FailureKind::kOther) << kind;
  }
}

TEST(Convert, NodeRankMayBeUnset) {
  NodeInfo in = SomeNode();
  in.node_rank.reset();
  EXPECT_FALSE(FromProto(OverTheWire(ToProto(in)))->node_rank.has_value());
}

TEST(Convert, UpdateComesThrough) {
  NodeUpdate in;
  in.round = 7;
  in.phase = NodePhase::kFailed;
  in.store_port = 65535;
  in.coordinator_port = 65534;
  in.worker_store = true;
  in.failures = {SomeFailure()};
  in.exited = {3, 0};
  in.given_up = {2};
  in.left_reason = "SIGINT";
  in.left_exit_code = 130;
  in.step = 1200;
  const auto out = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->step, in.step);
  EXPECT_EQ(FromProto(OverTheWire(ToProto(NodeUpdate{})))->step, std::nullopt);
  EXPECT_EQ(std::tie(in.round, in.phase, in.store_port, in.coordinator_port, in.worker_store,
                     in.left_reason, in.left_exit_code),
            std::tie(out->round, out->phase, out->store_port, out->coordinator_port,
                     out->worker_store, out->left_reason, out->left_exit_code));
  EXPECT_EQ(out->exited, in.exited);
  EXPECT_EQ(out->given_up, in.given_up);
  ASSERT_EQ(out->failures.size(), 1u);
  ExpectEqual(out->failures[0], in.failures[0]);
}

TEST(Convert, DirectivesComeThrough) {
  Directive wait;
  wait.reason = "waiting for node1";
  wait.news = {{7, "node2 has not been heard of for 5 s"}, {8, "node2 is heard of again"}};
  Directive run;
  run.kind = Directive::Kind::kRun;
  run.round = 3;
  run.assignment = {3,
                    1,
                    2,
                    1,
                    2,
                    8,
                    16,
                    "10.0.0.1",
                    29500,
                    29501,
                    true,
                    Preflight::kQuick,
                    {"10.0.0.1", "fd00::2"},
                    ""};
  Directive stop;
  stop.kind = Directive::Kind::kStop;
  stop.round = 2;
  stop.reason = "rank 3 failed";
  Directive finish;
  finish.kind = Directive::Kind::kFinish;
  finish.outcome.exit_code = 3;
  finish.outcome.reason = "rank 9 failed";
  finish.outcome.worker_failed = true;
  finish.outcome.cause_reason = "rank 9 failed by itself";
  finish.outcome.awaited = {{5, 1, "node2", "exited with code 0", true}};
  finish.outcome.warned = finish.outcome.refused = true;
  finish.outcome.history = {{1, "rank 2 failed", SomeFailure()}, {2, "node1 was lost", {}}};
  finish.outcome.failures = {SomeFailure()};
  finish.outcome.total_failures = 20;
  finish.outcome.restart_count = 3;
  finish.outcome.uncounted = 2;
  for (const Directive& in : {wait, run, stop, finish}) {
    const auto out = FromProto(OverTheWire(ToProto(in)));
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(std::tie(in.kind, in.round, in.reason), std::tie(out->kind, out->round, out->reason));
    ASSERT_EQ(in.news.size(), out->news.size());
    for (size_t i = 0; i < in.news.size(); ++i) {
      EXPECT_EQ(std::tie(in.news[i].number, in.news[i].text),
                std::tie(out->news[i].number, out->news[i].text));
    }
    const Assignment& a = in.assignment;
    const Assignment& b = out->assignment;
    EXPECT_EQ(std::tie(a.round, a.restart_count, a.max_restarts, a.node_rank, a.num_nodes,
                       a.first_rank, a.world_size, a.master_addr, a.master_port, a.coordinator_port,
                       a.worker_store, a.members),
              std::tie(b.round, b.restart_count, b.max_restarts, b.node_rank, b.num_nodes,
                       b.first_rank, b.world_size, b.master_addr, b.master_port, b.coordinator_port,
                       b.worker_store, b.members));
    const Outcome& c = in.outcome;
    const Outcome& d = out->outcome;
    EXPECT_EQ(std::tie(c.exit_code, c.reason, c.warned, c.refused, c.worker_failed, c.cause_reason,
                       c.total_failures, c.restart_count, c.uncounted),
              std::tie(d.exit_code, d.reason, d.warned, d.refused, d.worker_failed, d.cause_reason,
                       d.total_failures, d.restart_count, d.uncounted));
    ASSERT_EQ(c.awaited.size(), d.awaited.size());
    for (size_t i = 0; i < c.awaited.size(); ++i) {
      EXPECT_EQ(std::tie(c.awaited[i].rank, c.awaited[i].local_rank, c.awaited[i].host,
                         c.awaited[i].did, c.awaited[i].exited),
                std::tie(d.awaited[i].rank, d.awaited[i].local_rank, d.awaited[i].host,
                         d.awaited[i].did, d.awaited[i].exited));
    }
    ASSERT_EQ(c.history.size(), d.history.size());
    for (size_t i = 0; i < c.history.size(); ++i) {
      EXPECT_EQ(std::tie(c.history[i].round, c.history[i].reason),
                std::tie(d.history[i].round, d.history[i].reason));
      ASSERT_EQ(c.history[i].failure.has_value(), d.history[i].failure.has_value());
      if (c.history[i].failure) ExpectEqual(*c.history[i].failure, *d.history[i].failure);
    }
    ASSERT_EQ(c.failures.size(), d.failures.size());
    if (!c.failures.empty()) ExpectEqual(c.failures[0], d.failures[0]);
  }
}

TEST(Convert, PolicyComesThrough) {
  const auto out = FromProto(OverTheWire(ToProto(SomePolicy())));
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectEqual(*out, SomePolicy());
}

TEST(Convert, StatusComesThrough) {
  JobStatus in;
  in.job_id = "job";
  in.state = JobState::kStopping;
  in.explanation = "round 3 stops";
  in.round = 3;
  in.min_nodes = 1;
  in.max_nodes = 2;
  in.restarts = 4;
  in.uncounted = 3;
  in.max_restarts = 5;
  in.exit_code = 9;
  in.total_nodes = 7;
  in.nodes = {{"a", "10.0.0.1", 12, 1, 8, "running"}, {"b", "fd00::7", 13, -1, 8, "spare"}};
  in.nodes[1].standing = NodeStanding::kLeft;
  in.nodes[0].first_rank = 8;
  in.nodes[0].silent_for = std::chrono::seconds(2);
  in.nodes[0].drain_reason = "ECC";
  in.nodes[0].figures[Figure::kBandwidth] = 93.5;
  in.rounds = {{2, 10, 20, 30, 40, 2, 16, 1, "rank 3 failed"}, {3, 50, 0, 0, 0, 2, 16, 2, ""}};
  in.began_ms = 5;
  in.told_ms = 60;
  in.ran_for = std::chrono::milliseconds(10);
  in.world_size = 16;
  in.failure.emplace().log_tail = "no memory";
  in.failed_round = 2;
  in.notice = "a is slow";
  in.excluded = {"c: too slow"};
  const auto out = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(std::tie(in.job_id, in.state, in.explanation, in.round, in.min_nodes, in.max_nodes,
                     in.restarts, in.uncounted, in.max_restarts, in.exit_code, in.total_nodes),
            std::tie(out->job_id, out->state, out->explanation, out->round, out->min_nodes,
                     out->max_nodes, out->restarts, out->uncounted, out->max_restarts,
                     out->exit_code, out->total_nodes));
  ASSERT_EQ(out->nodes.size(), 2u);
  for (size_t i : {0, 1}) {
    const NodeStatus &a = in.nodes[i], &b = out->nodes[i];
    EXPECT_EQ(std::tie(a.host, a.address, a.pid, a.node_rank, a.nproc, a.state, a.first_rank,
                       a.silent_for, a.drain_reason, a.standing),
              std::tie(b.host, b.address, b.pid, b.node_rank, b.nproc, b.state, b.first_rank,
                       b.silent_for, b.drain_reason, b.standing));
  }
  EXPECT_EQ(out->nodes[0].figures[Figure::kBandwidth], 93.5);
  EXPECT_TRUE(std::isnan(out->nodes[1].figures[Figure::kBandwidth]));
  EXPECT_EQ(std::tie(in.began_ms, in.told_ms, in.ran_for, in.world_size, in.failed_round, in.notice,
                     in.excluded),
            std::tie(out->began_ms, out->told_ms, out->ran_for, out->world_size, out->failed_round,
                     out->notice, out->excluded));
  ASSERT_TRUE(out->failure);
  EXPECT_EQ(out->failure->log_tail, "no memory");
  ASSERT_EQ(out->rounds.size(), 2u);
  const RoundStatus &a = in.rounds[0], &b = out->rounds[0];
  EXPECT_EQ(std::tie(a.round, a.began_ms, a.ran_ms, a.stopping_ms, a.stopped_ms, a.nodes,
                     a.world_size, a.restarts, a.reason),
            std::tie(b.round, b.began_ms, b.ran_ms, b.stopping_ms, b.stopped_ms, b.nodes,
                     b.world_size, b.restarts, b.reason));
}

TEST(Convert, CarriesWhatANodeFoundOutAndWhatItDoesNotKnow) {
  NodeUpdate in;
  in.round = 3;
  in.phase = NodePhase::kPrepared;
  in.health.fault = "heat: too hot";
  in.health.hardware = "8 × CPU";
  in.health.joined = true;
  in.health.peers = {{3, PeerFinding::Kind::kWrong, "wrong"}, {4, PeerFinding::Kind::kMissing, ""}};
  in.health.links = {{1, 2, "slow"}};
  in.health.note = "something";
  for (size_t f = 0; f < kFigures; f += 2) in.health.figures.values[f] = static_cast<double>(f);
  const auto out = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->health.fault, in.health.fault);
  EXPECT_EQ(out->health.hardware, in.health.hardware);
  EXPECT_TRUE(out->health.joined);
  EXPECT_EQ(out->health.note, "something");
  ASSERT_EQ(out->health.peers.size(), 2u);
  EXPECT_EQ(out->health.peers[0].node_rank, 3);
  EXPECT_EQ(out->health.peers[0].kind, PeerFinding::Kind::kWrong);
  EXPECT_EQ(out->health.peers[0].why, "wrong");
  EXPECT_EQ(out->health.peers[1].kind, PeerFinding::Kind::kMissing);
  ASSERT_EQ(out->health.links.size(), 1u);
  EXPECT_EQ(out->health.links[0].a, 1);
  EXPECT_EQ(out->health.links[0].b, 2);
  EXPECT_EQ(out->health.links[0].why, "slow");
  for (size_t f = 0; f < kFigures; ++f) {
    EXPECT_EQ(std::isnan(out->health.figures.values[f]), f % 2 == 1);
    if (f % 2 == 0) {
      EXPECT_EQ(out->health.figures.values[f], static_cast<double>(f));
    }
  }
}

TEST(Convert, RefusesFindingsThatMakeNoSense) {
  NodeUpdate in;
  in.phase = NodePhase::kPrepared;
  const auto read = [&] { return FromProto(ToProto(in)).status().code(); };
  in.health.peers = {{-1, PeerFinding::Kind::kSlow, "slow"}};
  EXPECT_EQ(read(), absl::StatusCode::kInvalidArgument);
  in.health.peers = {{0, PeerFinding::Kind::kSlow, "two\nlines"}};
  EXPECT_EQ(read(), absl::StatusCode::kInvalidArgument);
  in.health.peers.assign(kMaxFindings + 1, {0, PeerFinding::Kind::kSlow, "slow"});
  EXPECT_EQ(read(), absl::StatusCode::kInvalidArgument);
  in.health.peers.clear();
  in.health.links = {{0, kMaxNodes, "slow"}};
  EXPECT_EQ(read(), absl::StatusCode::kInvalidArgument);
  v1::NodeUpdate unknown = ToProto(NodeUpdate{});
  unknown.mutable_health()->add_peers();
  EXPECT_EQ(FromProto(unknown).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Convert, CarriesWhatAPreflightFound) {
  Directive in;
  in.kind = Directive::Kind::kRun;
  in.assignment.round = 1;
  in.assignment.master_addr = "10.0.0.1";
  in.assignment.master_port = 1;
  in.assignment.preflight = Preflight::kFull;
  in.assignment.notice = "node1: heat";
  const auto run = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->assignment.preflight, Preflight::kFull);
  EXPECT_EQ(run->assignment.notice, "node1: heat");
  in = {};
  in.kind = Directive::Kind::kFinish;
  in.outcome.excluded = {"node2: slow"};
  EXPECT_EQ(FromProto(OverTheWire(ToProto(in)))->outcome.excluded, in.outcome.excluded);
}

TEST(Convert, CutsWhatIsForPeople) {
  NodeUpdate in;
  in.failures.assign(40, SomeFailure());
  in.failures[0].log_tail = std::string(5000, 'x') + "last words";
  in.failures[0].message = std::string(10000, 'y');
  in.failures[0].host = "bad\xFFname";
  const auto out = FromProto(OverTheWire(ToProto(in)));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->failures.size(), 16u);
  EXPECT_EQ(out->failures[0].log_tail.size(), kMaxTailBytes);
  EXPECT_THAT(out->failures[0].log_tail, testing::EndsWith("last words"));
  EXPECT_EQ(out->failures[0].message.size(), kMaxTextBytes);
  EXPECT_EQ(out->failures[0].host, "bad\xEF\xBF\xBDname");
}

TEST(Convert, NamesBothProtocolsThatDiffer) {
  v1::NodeInfo message = ToProto(SomeNode());
  message.set_protocol(9);
  const absl::Status status = FromProto(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("protocol 9"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("protocol 3"));
}

// Each case breaks one field of a good message; the error must name the field.
TEST(Convert, NamesTheFieldThatIsNonsense) {
  using Break = void (*)(v1::NodeInfo*);
  const std::pair<const char*, Break> cases[] = {
      {"job_id", [](v1::NodeInfo* m) { m->clear_job_id(); }},
      {"job_id", [](v1::NodeInfo* m) { m->set_job_id(std::string(257, 'x')); }},
      {"node_id", [](v1::NodeInfo* m) { m->clear_node_id(); }},
      {"incarnation", [](v1::NodeInfo* m) { m->set_incarnation(0); }},
      {"host", [](v1::NodeInfo* m) { m->set_host(std::string(257, 'x')); }},
      {"pid", [](v1::NodeInfo* m) { m->set_pid(-1); }},
      {"min_nodes", [](v1::NodeInfo* m) { m->mutable_policy()->set_min_nodes(0); }},
      {"min_nodes", [](v1::NodeInfo* m) { m->mutable_policy()->set_min_nodes(5); }},
      {"max_nodes", [](v1::NodeInfo* m) { m->mutable_policy()->set_max_nodes(-5); }},
      {"nproc", [](v1::NodeInfo* m) { m->set_nproc(0); }},
      {"node_rank", [](v1::NodeInfo* m) { m->set_node_rank(-1); }},
      {"node_rank", [](v1::NodeInfo* m) { m->set_node_rank(kMaxNodes); }},
      {"max_restarts", [](v1::NodeInfo* m) { m->mutable_policy()->set_max_restarts(-1); }},
      {"address", [](v1::NodeInfo* m) { m->set_address("gpu-01"); }},
      {"spares", [](v1::NodeInfo* m) { m->mutable_policy()->set_spares(-1); }},
      {"join_timeout", [](v1::NodeInfo* m) { m->mutable_policy()->clear_join_timeout(); }},
      {"lease", [](v1::NodeInfo* m) { m->mutable_policy()->clear_lease(); }},
      {"preflight", [](v1::NodeInfo* m) { m->mutable_policy()->clear_preflight(); }},
      {"preflight_action", [](v1::NodeInfo* m) { m->mutable_policy()->clear_preflight_action(); }},
      {"preflight_share", [](v1::NodeInfo* m) { m->mutable_policy()->set_preflight_share(101); }},
  };
  for (const auto& [field, make_bad] : cases) {
    v1::NodeInfo message = ToProto(SomeNode());
    make_bad(&message);
    const absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(Convert, RefusesUpdatesThatAreNonsense) {
  using Break = void (*)(v1::NodeUpdate*);
  const std::pair<const char*, Break> cases[] = {
      {"update.round", [](v1::NodeUpdate* m) { m->set_round(-1); }},
      {"update.phase", [](v1::NodeUpdate* m) { m->clear_phase(); }},
      {"update.phase", [](v1::NodeUpdate* m) { m->set_phase(static_cast<v1::NodePhase>(77)); }},
      {"update.store_port", [](v1::NodeUpdate* m) { m->set_store_port(65536); }},
      {"update.coordinator_port", [](v1::NodeUpdate* m) { m->set_coordinator_port(65536); }},
      {"failures",
       [](v1::NodeUpdate* m) {
         for (int i = 0; i < 17; ++i) m->add_failures();
       }},
      {"failure.rank", [](v1::NodeUpdate* m) { m->add_failures()->set_rank(-1); }},
      {"failure.log_tail",
       [](v1::NodeUpdate* m) { m->add_failures()->set_log_tail(std::string(4097, 'x')); }},
      {"left_exit_code", [](v1::NodeUpdate* m) { m->set_left_exit_code(256); }},
      {"update.unreached", [](v1::NodeUpdate* m) { m->add_unreached(kMaxNodes); }},
      {"update.workers_lost", [](v1::NodeUpdate* m) { m->set_workers_lost("a\nforged line"); }},
  };
  for (const auto& [field, make_bad] : cases) {
    v1::NodeUpdate message = ToProto(NodeUpdate());
    make_bad(&message);
    const absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(Convert, RefusesDirectivesThatAreNonsense) {
  EXPECT_FALSE(FromProto(v1::Directive()).ok());
  v1::Directive run;
  run.mutable_run()->set_round(1);
  EXPECT_FALSE(FromProto(run).ok());
  v1::Policy policy = ToProto(SomePolicy());
  policy.mutable_last_call()->set_seconds(-1);
  EXPECT_FALSE(FromProto(policy).ok());
  EXPECT_FALSE(FromProto(v1::Policy()).ok());
}

TEST(Convert, RefusesNamesThatCouldDriveATerminal) {
  for (const char* name : {"node\x1b[2J", "node\nhlaunch: forged", "node\x7f"}) {
    NodeInfo info = SomeNode();
    info.host = name;
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(ToProto(info)).status())) << name;
    NodeUpdate update;
    update.phase = NodePhase::kLeft;
    update.left_reason = name;
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(ToProto(update)).status())) << name;
  }
}

TEST(ToUtf8, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(ToUtf8("plain", 100), "plain");
  EXPECT_EQ(ToUtf8("\xE2\x82\xAC \xF0\x9F\x98\x80 \xC3\xA9", 100),
            "\xE2\x82\xAC \xF0\x9F\x98\x80 \xC3\xA9");
  const char* const bad[] = {
      "\xFF", "\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xE0\x80\x80"};
  for (const char* text : bad) EXPECT_THAT(ToUtf8(text, 100), testing::StartsWith("\xEF\xBF\xBD"));
}

TEST(ToUtf8, CutsBetweenCharacters) {
  EXPECT_EQ(ToUtf8("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(ToUtf8("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
}

TEST(Convert, QuestionsAboutRanksComeThrough) {
  const NodeQuestion in{
      7, {RankQuestion::Kind::kStacks, {0, 1, 2, 9}, true, std::chrono::seconds(30)}, 5000};
  const auto out = FromProto(ToProto(in));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->number, 7u);
  EXPECT_EQ(out->max_bytes, 5000u);
  EXPECT_EQ(out->question.kind, RankQuestion::Kind::kStacks);
  EXPECT_EQ(out->question.ranks, in.question.ranks);
  EXPECT_TRUE(out->question.native);
  EXPECT_EQ(out->question.patience, std::chrono::seconds(30));
}

TEST(Convert, AnswersAboutRanksComeThrough) {
  const auto answer = FromProto(ToProto(NodeAnswer{7, std::string("a\0b", 3), "why"}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 7u);
  EXPECT_EQ(answer->text, std::string("a\0b", 3));
  EXPECT_EQ(answer->problem, "why");
  const auto job = FromProto(ToProto(JobAnswer{3, 16, "it runs", {{"n", 1, 8, 8, "text", "why"}}}));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(std::tie(job->round, job->world_size, job->explanation),
            std::make_tuple(3, 16, "it runs"));
  ASSERT_EQ(job->nodes.size(), 1u);
  const NodeWord& word = job->nodes[0];
  EXPECT_EQ(
      std::tie(word.host, word.node_rank, word.first_rank, word.nproc, word.text, word.problem),
      std::make_tuple("n", 1, 8, 8, "text", "why"));
}

TEST(Convert, WordsOfNodesComeThroughIfTheyAreShortEnough) {
  const auto word = FromProto(ToProto(RoundWord{3, 7, std::string("a\0b", 3)}));
  ASSERT_TRUE(word.ok()) << word.status();
  EXPECT_EQ(std::tie(word->round, word->node_rank, word->text),
            std::make_tuple(3, 7, std::string("a\0b", 3)));
  EXPECT_TRUE(FromProto(ToProto(RoundWord{1, 0, std::string(kMaxRoundWordBytes, 'x')})).ok());
  EXPECT_FALSE(FromProto(ToProto(RoundWord{1, 0, std::string(kMaxRoundWordBytes + 1, 'x')})).ok());
  EXPECT_FALSE(FromProto(ToProto(RoundWord{1, -1, ""})).ok());
}

TEST(Convert, QuestionsAboutRanksOutOfRangeAreRefused) {
  const v1::RankQuestion good = ToProto(RankQuestion());
  EXPECT_TRUE(FromProto(good).ok());
  using Break = void (*)(v1::RankQuestion*);
  for (const Break broken :
       {Break([](v1::RankQuestion* q) { q->clear_kind(); }),
        Break([](v1::RankQuestion* q) { q->set_ranks("x"); }),
        Break([](v1::RankQuestion* q) { q->clear_patience(); }),
        Break([](v1::RankQuestion* q) { q->mutable_patience()->set_seconds(61); })}) {
    v1::RankQuestion question = good;
    broken(&question);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(question).status()));
  }
  v1::NodeAnswer answer;
  answer.set_text(std::string(kMaxAnswerBytes + 1, 'x'));
  EXPECT_FALSE(FromProto(answer).ok());
  answer.clear_text();
  answer.set_problem("two\nlines");
  EXPECT_FALSE(FromProto(answer).ok());
}

}  // namespace
}  // namespace hlaunch
