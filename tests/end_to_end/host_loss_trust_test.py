#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A job whose nodes have a token or certificates outlives the host of its rendezvous. Strangers can
neither keep its record nor read or change it, on any node."""

import os
import re
import sys
import unittest

import attack_test
import host_loss_test
import jobs
import lab
import trust_test

FALSE_VOTER = lab.WORKERS / "false_voter.py"
JOB = "a-job-of-ours"
FAR_AHEAD = 1 << 61  # A term that would depose any leader.


class HostDiesWithTrust(host_loss_test.HostLossTest):
    """A job on three nodes; the fourth node is the stranger's."""

    count = 4
    least = 2

    def setUp(self):
        super().setUp()
        self.nodes, self.stranger = self.nodes[:3], self.nodes[3]
        self.count = 3

    def options_of(self, _):
        return ("--rdzv-id", JOB)


class Strangers(HostDiesWithTrust):
    env = {"HLAUNCH_TOKEN": lab.TOKEN}
    # A stranger without a token connects in clear, with some server name, or with the job's server
    # name, which can be read on the wire.
    ways = ("clear", "stranger.hlaunch", trust_test.server_name(lab.TOKEN))
    holder = "token"

    def voters(self, places, term, ways, env, seconds):
        """{(node, port, way): the outcome of a message}; all messages are sent at once."""
        tried = {(node, port, way): self.stranger.start(
            sys.executable, FALSE_VOTER, node.ip, port, JOB, term, way, seconds, env=env)
                 for node, port in places for way in ways}
        self.assertEqual({run.wait(30) for run in tried.values()}, {0}, self.told(tried.values()))
        return {key: run.out.strip() for key, run in tried.items()}

    def keepers(self, runs):
        """(node, port) of each node that keeps the record; it answers those who have the token."""
        places = [(node, port) for node, run in zip(self.nodes, runs)
                  for port in attack_test.listening(jobs.agent_of(run))]

        def heard():
            said = self.voters(places, 1, [self.holder], self.env, 2)  # Some ports are silent.
            found = [place[:2] for place, words in said.items() if words == "answered"]
            return [node for node, _ in found] == self.nodes and found
        found = lab.poll(heard, 20)
        self.assertTrue(found, self.told(runs))
        return found

    def refused(self, *words, env):
        run = self.stranger.run(lab.HLAUNCH, *words, env=env)
        self.assertEqual(run.code, jobs.REFUSED, str(run))

    def strangers_try(self, keepers):
        other = {**self.env, "HLAUNCH_TOKEN": lab.OTHER_TOKEN}
        for ways, env in ((self.ways, {}), ([self.holder], other)):
            for place, words in self.voters(keepers, FAR_AHEAD, ways, env, 60).items():
                self.assertIn(words, ("closed", "refused"), place)
        for node, port in keepers:
            for env in ({}, other):
                self.refused("status", JOB, "--rdzv-endpoint", f"{node.ip}:{port}", env=env)
        self.refused("--nnodes", "2:3", "--rdzv-endpoint", self.endpoint, "--on-host-loss", "wait",
                     "--rdzv-id", JOB, "true", env=other)

    def test_they_change_nothing_and_the_job_outlives_its_host(self):
        runs = self.begin()
        self.strangers_try(self.keepers(runs))
        said = self.told(runs)
        self.assertNotRegex(said, host_loss_test.LEADS)
        self.assertEqual([len(jobs.environments(run)) for run in runs], [1, 1, 1], said)
        self.assertEqual(len(re.findall("becomes a voter", runs[0].err)), 2, said)
        self.lose_host_of_three(runs)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class StrangersInClearAtLength(Strangers):
    env = {"HLAUNCH_TOKEN": lab.TOKEN, "HLAUNCH_TLS": "off"}
    ways = (*Strangers.ways, "greets:" + trust_test.server_name(lab.TOKEN))
    holder = "greets"


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class CertificatesAtLength(HostDiesWithTrust):
    def setUp(self):
        super().setUp()
        self.site = trust_test.Site(self.lab.folder / "site")

    def options_of(self, node):
        return (*super().options_of(node), *self.site.files(node.name))

    def test_the_job_outlives_its_host(self):
        self.lose_host_of_three(self.begin())


if __name__ == "__main__":
    lab.main()
