#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A small API server of Kubernetes: Leases and ConfigMaps with resourceVersion, uid and
preconditions like the real one, over HTTPS with tokens, or in clear as behind `kubectl proxy`; and
faults on demand.

    kube_api.py [--listen ADDR] [--port N] [--cert FILE --key FILE] [--tokens FILE]

Prints its port, and the port on 127.0.0.1 at which tests control it with a POST of one of

    {"fault": {"verb": "PUT", "resource": "leases", "times": 2, "status": 429, "retry_after": 1}}
    {"fault": {"verb": "PUT", "resource": "configmaps", "times": 1, "lose": true}}    done, not answered
    {"fault": {"verb": "GET", "resource": "configmaps", "times": 1, "delay": 2}}
    {"away": true}                    it answers no request, and connections end
    {"forbid": ["list configmaps"]}   verbs that the Role lacks
    {"delete": "leases/hlaunch"}      as kubectl does; {"put": {…}} writes an object likewise

A GET returns all objects, and the number of requests by verb.
"""

import argparse
import base64
import http.server
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse
import uuid

GROUPS = {"leases": "coordination.k8s.io", "configmaps": ""}
KINDS = {"leases": "Lease", "configmaps": "ConfigMap"}
PATH = re.compile(r"/(?:api/v1|apis/coordination\.k8s\.io/v1)/namespaces/([^/]+)/(leases|configmaps)(?:/([^/]+))?$")
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
MOST_BYTES = 1 << 20  # Of a ConfigMap.


class Refused(Exception):
    def __init__(self, code, reason, message, retry_after=None):
        super().__init__(message)
        self.code, self.retry_after = code, retry_after
        self.body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                     "reason": reason, "code": code}


def check(resource, item):
    """Validates what the real server validates."""
    meta, wrong = item["metadata"], []
    if not NAME.match(meta.get("name", "")) or len(meta["name"]) > 253:
        wrong.append("metadata.name")
    wrong += [f"metadata.labels: {value}" for value in meta.get("labels", {}).values()
              if len(value) > 63 or not LABEL.match(value)]
    if resource == "leases":
        spec = item["spec"]
        wrong += [f"spec.{key}" for key in ("acquireTime", "renewTime")
                  if key in spec and not MICRO_TIME.match(spec[key])]
        if spec.get("leaseDurationSeconds", 1) <= 0 or spec.get("leaseTransitions", 0) < 0:
            wrong.append("spec.leaseDurationSeconds")
    else:
        held = [base64.b64decode(text, validate=True) for text in item.get("binaryData", {}).values()]
        if sum(map(len, held)) > MOST_BYTES:
            wrong.append("[]: Too long: must have at most 1048576 bytes")
    if wrong:
        raise Refused(422, "Invalid", f"{KINDS[resource]} is invalid: {', '.join(wrong)}")


class Objects:
    """All objects; a lock serializes the changes."""

    def __init__(self):
        self.lock = threading.Lock()
        self.items, self.revision = {}, 0

    def stamp(self, item):
        self.revision += 1
        item["metadata"]["resourceVersion"] = f"rv-{self.revision}"  # Opaque to clients.
        item["metadata"]["managedFields"] = [{"manager": "hlaunch"}]
        return item

    def missing(self, resource, name):
        return Refused(404, "NotFound", f'{resource} "{name}" not found')

    def conflict(self, resource, name):
        return Refused(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": the '
                                        "object has been modified; please apply your changes to the "
                                        "latest version and try again")

    def get(self, key):
        if key not in self.items:
            raise self.missing(*key[1:])
        return self.items[key]

    def create(self, space, resource, item):
        meta = item["metadata"]
        key = (space, resource, meta["name"])
        if meta.get("resourceVersion"):
            raise Refused(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        if key in self.items:
            raise Refused(409, "AlreadyExists", f'{resource} "{meta["name"]}" already exists')
        check(resource, item)
        meta.update(uid=str(uuid.uuid4()), namespace=space, creationTimestamp="2026-01-01T00:00:00Z")
        self.items[key] = self.stamp(item)
        return item

    def replace(self, key, item):
        meta, old = item["metadata"], self.items.get(key)
        if old is None:
            # A PUT may create a Lease, unless the Lease must have a certain uid.
            raise (self.conflict if key[1] == "leases" and meta.get("uid") else self.missing)(*key[1:])
        for field in ("uid", "resourceVersion"):
            if meta.get(field, old["metadata"][field]) != old["metadata"][field]:
                raise self.conflict(*key[1:])
        check(key[1], item)
        meta.update({field: old["metadata"][field] for field in ("uid", "creationTimestamp")})
        self.items[key] = self.stamp(item)
        return item

    def delete(self, key, options):
        old = self.get(key)
        for field, wanted in options.get("preconditions", {}).items():
            if old["metadata"][field] != wanted:
                raise self.conflict(*key[1:])
        del self.items[key]
        self.revision += 1
        return {"kind": "Status", "status": "Success"}

    def list(self, space, resource, query):
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        limit, begin = int(query.get("limit", 0)) or None, 0
        if "continue" in query:
            begin = int(query["continue"])
        found = [item for key, item in sorted(self.items.items()) if key[:2] == (space, resource) and
                 all(item["metadata"].get("labels", {}).get(k) == v for k, v in wanted.items())]
        meta = {"resourceVersion": f"rv-{self.revision}"}
        if limit and begin + limit < len(found):
            meta["continue"] = str(begin + limit)
        return {"kind": f"{KINDS[resource]}List", "apiVersion": "v1", "metadata": meta,
                "items": found[begin:][:limit]}


class World:
    def __init__(self, tokens):
        self.tokens, self.objects = tokens, Objects()
        self.faults, self.forbidden, self.away = [], set(), False
        self.asked, self.connections = {}, set()

    def tell(self, words):
        self.faults += [words["fault"]] if "fault" in words else []
        self.forbidden = set(words.get("forbid", self.forbidden))
        self.away = words.get("away", self.away)
        with self.objects.lock:
            if "delete" in words:
                resource, name = words["delete"].split("/")
                for key in [key for key in self.objects.items if key[1:] == (resource, name)]:
                    del self.objects.items[key]
            if "put" in words:
                item = words["put"]
                key = (item["metadata"]["namespace"],
                       next(r for r, kind in KINDS.items() if kind == item["kind"]), item["metadata"]["name"])
                if key not in self.objects.items:
                    self.objects.create(key[0], key[1], item)
                else:
                    self.objects.items[key] = self.objects.stamp(item)
        if self.away:
            for connection in list(self.connections):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def fault_for(self, verb, resource):
        for fault in self.faults:
            if (fault["verb"], fault["resource"]) == (verb, resource) and fault.get("times", 1) > 0:
                fault["times"] = fault.get("times", 1) - 1
                return fault
        return {}


def verb_of(method, name):
    return {"POST": "create", "PUT": "update", "DELETE": "delete"}.get(
        method, "get" if name else "list")


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # An answer is sent in one piece.
    disable_nagle_algorithm = True
    world = None

    def log_message(self, *_):
        pass

    def body(self):
        length = int(self.headers.get("Content-Length", 0))
        return json.loads(self.rfile.read(length)) if length else {}

    def send(self, code, body, retry_after=None):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(text)


class Control(Answering):
    def do_POST(self):
        self.world.tell(self.body())
        self.send(200, {})

    def do_GET(self):
        with self.world.objects.lock:
            objects = {f"{key[1]}/{key[2]}": item for key, item in self.world.objects.items.items()}
            self.send(200, {"objects": objects, "asked": self.world.asked})


class Api(Answering):
    def setup(self):
        try:
            if isinstance(self.request, ssl.SSLSocket):
                self.request.do_handshake()
        except OSError:
            pass  # The client may reject the certificate; then it sends nothing, either.
        self.world.connections.add(self.request)
        super().setup()

    def finish(self):
        self.world.connections.discard(self.request)
        try:
            super().finish()
        except OSError:
            pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def do_GET(self):
        body = self.body()
        if self.world.away:
            self.close_connection = True
            return
        try:
            self.answer(body)
        except Refused as refused:
            self.send(refused.code, refused.body, refused.retry_after)

    do_POST = do_PUT = do_DELETE = do_GET

    def answer(self, body):
        path, _, query = self.path.partition("?")
        parts = PATH.match(path)
        if not parts:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        space, resource, name = parts.groups()
        verb = verb_of(self.command, name)
        self.check_user(space, verb, resource)
        fault = self.world.fault_for(self.command, resource)
        time.sleep(fault.get("delay", 0))
        if "status" in fault:
            raise Refused(fault["status"], "Faulty", f"a fault of status {fault['status']}",
                          fault.get("retry_after"))
        query = dict(urllib.parse.parse_qsl(query, strict_parsing=bool(query)))
        with self.world.objects.lock:
            done = self.do(verb, (space, resource, name), body, query)
        if fault.get("lose"):
            self.close_connection = True
            return
        self.send(201 if verb == "create" else 200, done)

    def do(self, verb, key, body, query):
        space, resource, _ = key
        objects = self.world.objects
        return {"get": lambda: objects.get(key), "list": lambda: objects.list(space, resource, query),
                "create": lambda: objects.create(space, resource, body),
                "update": lambda: objects.replace(key, body),
                "delete": lambda: objects.delete(key, body)}[verb]()

    def check_user(self, space, verb, resource):
        asked = f"{verb} {resource}"
        self.world.asked[asked] = self.world.asked.get(asked, 0) + 1
        if self.world.tokens:
            with open(self.world.tokens, encoding="utf-8") as file:
                good = [f"Bearer {line.strip()}" for line in file if line.strip()]
            if self.headers.get("Authorization") not in good:
                raise Refused(401, "Unauthorized", "Unauthorized")
        if asked in self.world.forbidden:
            raise Refused(403, "Forbidden", f'{resource} is forbidden: User "system:serviceaccount:{space}'
                          f':hlaunch" cannot {verb} resource "{resource}" in API group '
                          f'"{GROUPS[resource]}" in the namespace "{space}"')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


def serve(handler, address, context=None):
    server = Server(address, handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1")
    for name in ("--port", "--control"):
        parser.add_argument(name, type=int, default=0)
    for name in ("--cert", "--key", "--tokens"):
        parser.add_argument(name)
    options = parser.parse_args()
    context = None
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
    Answering.world = World(options.tokens)
    print(serve(Api, (options.listen, options.port), context),
          serve(Control, ("127.0.0.1", options.control)), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
