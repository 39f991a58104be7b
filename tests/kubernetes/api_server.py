"""Stands in for the API server and the kubelets behind it, for a real kubectl: pods, and `exec` over WebSockets (protocol
v5.channel.k8s.io) into the pods of `pods.py`. Prints its port, and ends with its standard input."""
import base64
import hashlib
import http.server
import json
import os
import struct
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True

from pods import NO_SHELL, REFUSALS, Pods, Process, unparsed  # noqa: E402

PODS = Pods(os.environ["PODS"])
RESOURCES = {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
    {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]}]}
# kubectl loses what comes before it has made its streams (kubernetes#131189). A real API server first asks a kubelet.
READY = 0.3
# RFC 6455, section 1.3.
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of kubectl."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, reason, message):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                             "reason": reason, "code": status})

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(address.query, keep_blank_values=True)
        if PODS.is_down():
            # As of a server that is gone: nothing comes back.
            self.close_connection = True
            return
        parts = address.path.strip("/").split("/")
        if parts == ["api"]:
            self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        elif parts == ["apis"]:
            self.answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        elif parts == ["api", "v1"]:
            self.answer(200, RESOURCES)
        elif parts[:3] == ["api", "v1", "namespaces"] and parts[4:5] == ["pods"]:
            self.pods(parts[5:], query)
        else:
            self.refuse(404, "NotFound", "the server could not find the requested resource")

    def pods(self, parts, query):
        typed = {"kind": "Pod", "apiVersion": "v1"}
        selector = query.get("labelSelector", [""])[0]
        if not parts and unparsed(selector):
            self.refuse(400, "BadRequest", unparsed(selector))
            return
        if not parts:
            items = [typed | pod for pod in PODS.selected(selector)]
            self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
            return
        name, words = parts[0], query.get("command", [])
        pod = PODS.pod(name)
        way = PODS.way(name, words)
        refused = "not-found" if pod is None else way.get("refuse") if words else None
        if refused:
            status, reason, message = REFUSALS[refused]
            self.refuse(status, reason, message.format(pod=name))
        elif not words:
            self.answer(200, typed | pod)
        elif pod["status"]["phase"] == "Pending":
            self.refuse(400, "BadRequest", f"pod {name} does not have a host assigned")
        elif "Sec-WebSocket-Key" not in self.headers:
            self.refuse(400, "BadRequest", "only WebSockets are spoken here")
        else:
            self.exec(name, words, way)

    def exec(self, name, words, way):
        key = self.headers["Sec-WebSocket-Key"] + GUID
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
        self.end_headers()
        self.close_connection = True
        self.lock = threading.Lock()
        time.sleep(READY)
        if PODS.drops(name, way):
            # kubectl discards what comes for a stream that it does not have, whichever that is.
            self.status({"status": "Failure"}, channel=7)
            return
        if way.get("no-shell"):
            self.status({"status": "Failure", "message": NO_SHELL, "reason": "InternalError", "code": 500})
            return
        result = Process(PODS, name, words, self.receive, self.channel).run()
        if result[0] == "cut":
            self.frame(8, struct.pack(">H", 1000))
        elif result[0] == "abort":
            pass
        elif result[1]:
            self.status({"status": "Failure", "message": f"command terminated with non-zero exit code: exit status {result[1]}",
                         "reason": "NonZeroExitCode",
                         "details": {"causes": [{"reason": "ExitCode", "message": str(result[1])}]}})
        else:
            self.status({"status": "Success"})

    def status(self, document, channel=3):
        self.channel(channel, json.dumps({"metadata": {}} | document).encode())
        self.frame(8, struct.pack(">H", 1000))

    def channel(self, number, data):
        self.frame(2, bytes([number]) + data)

    def frame(self, opcode, payload):
        length = len(payload)
        head = bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length) if length < 1 << 16 \
            else b"\x7f" + struct.pack(">Q", length)
        with self.lock:
            try:
                self.wfile.write(bytes([0x80 | opcode]) + head + payload)
                self.wfile.flush()
            except (OSError, ValueError):
                # The connection is closed.
                pass

    def receive(self):
        """Bytes of channel 0; b"" once it or the connection is closed."""
        while True:
            try:
                head = self.rfile.read(2)
                if len(head) < 2:
                    return b""
                length = head[1] & 0x7F
                if length == 126:
                    length = struct.unpack(">H", self.rfile.read(2))[0]
                elif length == 127:
                    length = struct.unpack(">Q", self.rfile.read(8))[0]
                mask = self.rfile.read(4)
                data = self.rfile.read(length)
            except (OSError, ValueError):
                return b""
            whole = (mask * (length // 4 + 1))[:length]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(length, "big")
            opcode = head[0] & 0x0F
            if opcode == 8:
                return b""
            if opcode == 9:
                self.frame(10, data)
            elif data[:1] == b"\xff":
                return b""
            elif data[:1] == b"\x00" and len(data) > 1:
                return data[1:]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
