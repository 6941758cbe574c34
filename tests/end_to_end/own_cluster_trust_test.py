#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An own cluster: which hosts the head lets in. It refuses wrong, used, expired and foreign join
tokens and certificates, and its log says whom it refused and why."""

import json
import shutil
import time

import lab
import own_cluster_lab
import own_cluster_test


class Trust(own_cluster_test.ClusterTest):
    """Which hosts are let in, and which are no longer."""

    forms = False

    def setUp(self):
        super().setUp()
        self.cluster.init()

    def joins(self, index, words, says):
        run = self.cluster.root(index, "cluster", "join", *words)
        self.assertNotEqual(run.code, 0, str(run))
        self.assertRegex(run.out + run.err, says, f"{run}\n{self.cluster.told()}")

    def test_tokens_are_good_once_and_only_here(self):
        words = own_cluster_lab.join_words(self.cluster.line)
        place, _, token = words
        self.assertRegex(token, r"^hlj1\.[\w-]+\.[0-9a-f]{32}$")
        start, secret, pin = token.split(".")
        other = "A" if secret[-8] != "A" else "B"
        wrong = ".".join((start, secret[:-8] + other + secret[-7:], pin))
        self.joins(1, (place, "--token", wrong), "token")
        another_pin = "0" * 32 if pin != "0" * 32 else "1" * 32
        self.joins(1, (place, "--token", ".".join((start, secret, another_pin))), "key|authority|token|pin")
        self.joins(1, (place, "--token", "nonsense"), "token")
        self.cluster.join(1, words)
        self.joins(2, words, "token")  # The token was used.
        self.cluster.join(2)
        self.cluster.await_hosts(3)

    def test_each_refusal_of_a_token_is_logged(self):
        place, _, token = own_cluster_lab.join_words(self.cluster.line)
        self.age_tokens()
        self.joins(1, (place, "--token", token), "expired .* ago")
        self.head_says(rf"host node1 at {self.nodes[1].ip} may not join: the join token expired")
        another = self.cluster.root(2, "cluster", "init", "--listen",
                                    f"{self.nodes[2].ip}:{own_cluster_lab.PORT}")
        self.assertEqual(another.code, 0, str(another))
        of_another = own_cluster_lab.join_words(another.out)[2]
        left = self.cluster.root(2, "cluster", "leave", "--end-cluster")
        self.assertEqual(left.code, 0, str(left))
        self.joins(1, (place, "--token", of_another), "head of another cluster than the one of the token")
        start, secret, _ = of_another.split(".")
        self.is_refused(1, (place, "--token", ".".join((start, secret, token.split(".")[2]))), "node1",
                        "the join token is wrong: the head knows no such token")
        words = self.cluster.token()
        self.cluster.join(1, words)
        self.is_refused(2, (*words, "--name", "node9"), "node9", "the join token was used already, by node1")
        # No token lets a host take the name of a host that is connected.
        for name, why in (("node1", "a host named node1 is connected"), ("node0", "node0 is the head's own host")):
            self.is_refused(2, (*self.cluster.token(), "--name", name), name, why)

    def is_refused(self, index, words, name, why):
        """The host gets the reason, and the log of a new head names the host. A head writes one
        such line in ten seconds."""
        self.new_head()
        self.joins(index, words, why)
        self.head_says(f"host {name} at {self.nodes[index].ip} may not join: {why}")

    def new_head(self):
        self.cluster.kill("head")
        self.cluster.start_head()
        for index in self.cluster.daemons:
            self.head_says(f"host node{index} is there")

    def age_tokens(self):
        """Makes all tokens that the head has given out expire now."""
        self.cluster.kill("head")
        file = self.nodes[0].folder / "lib/hlaunch-head/hosts.json"
        registrar = json.loads(file.read_text(encoding="utf-8"))
        for token in registrar["tokens"]:
            token["until"] = int(time.time()) - 1
        file.write_text(json.dumps(registrar), encoding="utf-8")
        self.cluster.start_head()
        self.cluster.await_connected(0)

    def head_says(self, pattern):
        self.cluster.head.wait_for(pattern, 20)

    def test_each_refusal_of_a_certificate_is_logged(self):
        self.cluster.join(1)
        folder, head = self.lab.folder / "forged", self.nodes[0].folder / "lib/hlaunch-head"
        folder.mkdir()
        own = self.nodes[1].folder / "lib/hlaunchd"
        self.forge(folder / "expired", head / "authority.pem", head / "authority.key", -1)
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / "other.key")
        self.openssl("req", "-x509", "-new", "-key", folder / "other.key", "-subj", "/CN=hlaunch",
                     "-days", 10, "-out", folder / "other.pem")
        self.forge(folder / "foreign", folder / "other.pem", folder / "other.key", 10)
        self.forge(folder / "nameless", head / "authority.pem", head / "authority.key", 10, "DNS:node1")
        self.forge(folder / "unknown", head / "authority.pem", head / "authority.key", 10,
                   "URI:hlaunch-host:node7")
        for show, why in ((folder / "expired", "certificate has expired"),
                          (folder / "foreign", "not believed"), (folder / "nameless", "certificate"),
                          (head / "head", "purpose"), (folder / "unknown", "certificate of node7"),
                          (None, r"\S+")):
            self.shows(show, why)
        # Meanwhile the host with the right certificate is let in.
        self.cluster.await_connected(1)
        self.assertTrue((own / "host.pem").exists())

    def forge(self, path, authority, key, days, name="URI:hlaunch-host:node1"):
        extensions = path.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={name}\nextendedKeyUsage=clientAuth\n", encoding="utf-8")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{path}.key")
        self.openssl("req", "-new", "-key", f"{path}.key", "-subj", "/CN=node1", "-out", f"{path}.csr")
        self.openssl("x509", "-req", "-in", f"{path}.csr", "-CA", authority, "-CAkey", key, "-set_serial", 77,
                     "-days", days, "-extfile", extensions, "-out", f"{path}.pem")

    def openssl(self, *words):
        done = self.nodes[0].run("openssl", *words)
        self.assertEqual(done.code, 0, str(done))

    def shows(self, identity, why):
        """node2 connects with this identity, or sends noise; a new head logs why it refuses."""
        self.new_head()
        place = f"{self.nodes[0].ip}:{own_cluster_lab.PORT}"
        if identity is None:
            words = ["bash", "-c", f"echo 'GET / HTTP/1.0' > /dev/tcp/{place.replace(':', '/')}; sleep 1"]
        else:
            words = ["timeout", str(2 * lab.PATIENCE), "openssl", "s_client", "-connect", place, "-cert", f"{identity}.pem",
                     "-key", f"{identity}.key", "-quiet"]
        self.nodes[2].run(*words)
        self.head_says(rf"a connection from \S*{self.nodes[2].ip} port \d+ is refused: .*{why}")

    def test_a_key_that_was_copied_is_noticed_and_ended(self):
        self.cluster.join(1)
        lib = [node.folder / "lib" for node in self.nodes]
        shutil.copytree(lib[1] / "hlaunchd", lib[2] / "hlaunchd")
        (lib[2] / "hlaunchd").chmod(0o700)
        self.cluster.start_daemon(2)
        self.head_says(rf"node1 has connected anew.* It came from {self.nodes[1].ip} and now from "
                       rf"{self.nodes[2].ip}; .*cluster throw-out node1")
        out = self.cluster.root(0, "cluster", "throw-out", "node1")
        self.assertEqual(out.code, 0, str(out))
        self.head_says("host node1 is refused: it was thrown out")
        for index in (1, 2):
            self.assertTrue(lab.poll(lambda index=index: self.cluster.root(index, "nodes").code != 0, 20, 0.2))
        # The host itself can join again; the copy is useless.
        self.cluster.kill(1)
        left = self.cluster.root(1, "cluster", "leave")
        self.assertEqual(left.code, 0, str(left))
        self.cluster.join(1)
        self.head_says("host node1 is refused: another host has joined by that name since")
        self.assertNotEqual(self.cluster.root(2, "nodes").code, 0)

    def test_a_host_that_was_thrown_out_is_cut_off(self):
        for index in (1, 2):
            self.cluster.join(index)
        self.cluster.await_hosts(3)
        out = self.cluster.root(0, "cluster", "throw-out", "node2")
        self.assertEqual(out.code, 0, str(out))
        self.assertTrue(lab.poll(lambda: self.cluster.root(2, "nodes").code != 0, 20, 0.2))
        self.assertTrue(lab.poll(lambda: "node2" not in self.cluster.hosts()
                                 or self.cluster.hosts()["node2"]["state"] == "away", 20, 0.2))
        # A restart of its daemon does not help the host; a new token does.
        self.cluster.kill(2)
        self.cluster.start(2)
        self.assertNotEqual(self.cluster.root(2, "nodes").code, 0)
        self.cluster.kill(2)
        left = self.cluster.root(2, "cluster", "leave")
        self.assertEqual(left.code, 0, str(left))
        self.cluster.join(2)
        self.cluster.await_hosts(3)


if __name__ == "__main__":
    lab.main()
