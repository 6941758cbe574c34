# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The head of a cluster as one node daemon sees it. It takes the daemon's news, gives it orders and
answers the users' questions with the questions themselves. It decides nothing."""

import json
import pathlib
import socket
import ssl
import struct
import subprocess
import threading
from datetime import datetime, timedelta, timezone

PATIENCE = 60


class Authority:
    """A cluster's authority and the certificates it signs, made with openssl(1) in `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._key("authority")
        self._openssl("req", "-x509", "-new", "-key", self._path("authority.key"), "-subj",
                      "/CN=hlaunch cluster", "-days", "365", "-out", self._path("authority.pem"),
                      "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def _path(self, name):
        return self.folder / name

    def _openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True,
                       timeout=PATIENCE)

    def _key(self, name):
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                      self._path(f"{name}.key"))

    def sign(self, name, uri, usage, before=timedelta(hours=1), after=timedelta(days=30)):
        """Makes NAME.key and NAME.pem, which is valid from `before` ago until `after` from now."""
        self._key(name)
        self._openssl("req", "-new", "-key", self._path(f"{name}.key"), "-subj", f"/CN={name}",
                      "-out", self._path(f"{name}.csr"))
        self._certify(name, uri, usage, before, after)

    def _certify(self, name, uri, usage, before, after):
        rules, settings = self._path(f"{name}.ext"), self._path("ca.conf")
        rules.write_text("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                         f"extendedKeyUsage={usage}\nsubjectAltName=URI:{uri}\n", encoding="utf-8")
        settings.write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={self._path('index')}\nrand_serial=yes\n"
            "default_md=sha256\nunique_subject=no\npolicy=any\n[any]\ncommonName=supplied\n",
            encoding="utf-8")
        self._path("index").touch()
        now = datetime.now(timezone.utc)
        times = [f"{time:%Y%m%d%H%M%SZ}" for time in (now - before, now + after)]
        self._openssl("ca", "-batch", "-notext", "-config", settings, "-in",
                      self._path(f"{name}.csr"), "-cert", self._path("authority.pem"), "-keyfile",
                      self._path("authority.key"), "-startdate", times[0], "-enddate", times[1],
                      "-outdir", self.folder, "-extfile", rules, "-out", self._path(f"{name}.pem"))

    def sign_head(self):
        self.sign("the-head", "hlaunch-head", "serverAuth")

    def sign_host(self, name, **times):
        self.sign(name, f"hlaunch-host:{name}", "clientAuth", **times)

    def sign_request(self, name, request):
        """Signs a host's own request for a new certificate."""
        self._path(f"{name}.csr").write_text(request, encoding="utf-8")
        self._certify(name, f"hlaunch-host:{name}", "clientAuth", timedelta(hours=1),
                      timedelta(days=30))
        return self.read(f"{name}.pem")

    def read(self, name):
        return self._path(name).read_text(encoding="utf-8")


def frame(message):
    body = json.dumps(message).encode()
    return struct.pack("!I", len(body)) + body


def read_frame(stream):
    def read(size):
        got = b""
        while len(got) < size:
            more = stream.recv(size - len(got))
            if not more:
                raise EOFError
            got += more
        return got
    return json.loads(read(struct.unpack("!I", read(4))[0]))


class Refused(Exception):
    """An answer that is an error: its code and its message."""


class Host:
    """A node daemon's connection."""

    def __init__(self, head, stream, name):
        self.head, self.stream, self.name = head, stream, name
        self.lock, self.number, self.answers = threading.Lock(), 0, {}

    def send(self, message):
        with self.lock:
            self.stream.sendall(frame(message))

    def serve(self):
        try:
            self.send({"tell": "ping", "body": {}})  # This tells the host that it is let in.
            while True:
                self.take(read_frame(self.stream))
        except (EOFError, OSError):
            self.head.left(self)
        finally:
            self.stream.close()

    def take(self, message):
        if message.get("tell") == "ping":
            return self.send({"tell": "ping", "body": {}})
        if "tell" in message:
            return self.head.heard(self.name, message["tell"], message["body"])
        if "ask" in message:
            answer = self.head.answer(message)
            return self.send({"id": message["id"], **answer})
        event, _ = self.answers[message["id"]]
        self.answers[message["id"]] = (event, message)
        event.set()


class SmallHead:
    def __init__(self, authority):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.num_tickets = 0
        self.context.load_cert_chain(authority.folder / "the-head.pem",
                                     authority.folder / "the-head.key")
        self.context.load_verify_locations(authority.folder / "authority.pem")
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.hosts, self.news, self.asked = {}, [], []
        self.replies = {}  # By verb: the answer that replaces the echo of the question.
        self.port = 0
        self.lock = threading.Lock()  # Guards `hosts` and the listener's state.
        self.listener = None
        self.listen()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.shake, args=(connection, listener), daemon=True).start()

    def shake(self, connection, listener):
        try:
            stream = self.context.wrap_socket(connection, server_side=True)
            subject = dict(pair for entry in stream.getpeercert()["subject"] for pair in entry)
        except OSError:
            return
        host = Host(self, stream, subject["commonName"])
        with self.lock:
            if listener.fileno() < 0:  # The head was closed meanwhile.
                return stream.close()
            self.hosts[host.name] = host
        host.serve()

    def left(self, host):
        if self.hosts.get(host.name) is host:
            del self.hosts[host.name]

    def heard(self, host, verb, body):
        self.news.append((host, verb, body))

    def answer(self, message):
        self.asked.append(message)
        reply = self.replies.get(message["ask"])
        if reply is None:
            return {"body": {"you": message.get("user"), "said": message["body"]}}
        return reply(message) if callable(reply) else reply

    def order(self, host, verb, body):
        """Gives a node daemon an order; returns its answer."""
        there = self.hosts[host]
        there.number += 1
        number, event = there.number, threading.Event()
        there.answers[number] = (event, None)
        there.send({"id": number, "ask": verb, "body": body})
        if not event.wait(PATIENCE):
            raise TimeoutError(f"{host} did not answer {verb}")
        answer = there.answers.pop(number)[1]
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"])
        return answer["body"]

    def close(self):
        """Ends the head as a power loss would."""
        with self.lock:
            if self.listener.fileno() >= 0:
                self.listener.shutdown(socket.SHUT_RDWR)  # This wakes accept(); close() would not.
                self.listener.close()
            hosts = list(self.hosts.values())
        for host in hosts:
            try:
                host.stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
