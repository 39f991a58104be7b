"""Pods that are folders of this machine, and processes "in" them that go wrong in the ways of `kubectl exec`.

The folder named by $PODS holds:

| file | is |
| --- | --- |
| `pods.json` | the pods, as Kubernetes' Pod objects; `{"down": true}` in their place is an API server that is gone |
| `ways.json` | what goes wrong with processes in a pod, by the pod's name: see `Way` |
| `calls` | one line for each process that was started: the pod and its first words |
| `questions` | one line for each question to the double of kubectl: its words |
| `dropped` | one line for each status that kubectl dropped: the pod |
| `home/POD` | the pod's home directory |
"""
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

# How often a process under way looks whether something goes wrong now.
LOOK = 0.05
CHUNK = 1 << 16

FORBIDDEN = ('pods "{pod}" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace '
             '"default"')
NO_SHELL = ('error executing command in container: failed to exec in container: failed to start exec "abc": OCI runtime exec '
            'failed: exec failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown')
# HTTP status, Kubernetes' reason, message.
REFUSALS = {
    "forbidden": (403, "Forbidden", FORBIDDEN),
    "not-found": (404, "NotFound", 'pods "{pod}" not found'),
    "kubelet-gone": (500, "", "error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused"),
    "no-container": (500, "InternalError", 'container not found ("agent")'),
}


def unparsed(selector):
    """What the API server says of a selector that is none; nothing of `a=b,c=d`."""
    if all(part.count("=") == 1 for part in selector.split(",") if part):
        return None
    return "unable to parse requirement: found '=', expected: ',' or 'end of string'"


class Way:
    """What goes wrong with one process. Keys of its JSON:

    | key | means |
    | --- | --- |
    | `of` | only for processes whose words hold this text |
    | `refuse` | it is not started: a word of REFUSALS |
    | `no-shell` | the image has no sh |
    | `dropped` | so many times kubectl drops how the start failed, as if it came before kubectl was ready (kubernetes#131189) |
    | `stdin` | only so many bytes of its input arrive, and then its end, or what `then` says |
    | `stdout` | `then` happens after so many bytes of its output |
    | `idle` | `then` happens after so many seconds without a byte in either direction |
    | `now` | happens now: looked at while the process runs |
    | `then` | `cut` (the stream ends as if all was well), `abort` (it breaks), `hang` (nothing more passes), `kill` |
    | `orphan` | the process does not see that the stream is cut: neither its input nor its output ends |
    """

    def __init__(self, entry):
        self.entry = entry

    def get(self, key, usual=None):
        return self.entry.get(key, usual)


class Pods:
    """The folder."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def read(self, name, usual):
        try:
            return json.loads((self.folder / name).read_text())
        except FileNotFoundError:
            return usual

    def is_down(self):
        return isinstance(self.read("pods.json", []), dict)

    def list(self):
        return self.read("pods.json", [])

    def pod(self, name):
        return next((pod for pod in self.list() if pod["metadata"]["name"] == name), None)

    def selected(self, selector):
        """Pods with all labels of `a=b,c=d`."""
        wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
        return [pod for pod in self.list() if wanted.items() <= pod["metadata"].get("labels", {}).items()]

    def way(self, name, words):
        entry = self.read("ways.json", {}).get(name, {})
        return Way(entry if entry.get("of", "") in " ".join(words) else {})

    def drops(self, name, way):
        """Whether kubectl drops this status of a process in the pod."""
        path = self.folder / "dropped"
        so_far = path.read_text().split().count(name) if path.exists() else 0
        if so_far >= way.get("dropped", 0):
            return False
        with open(path, "a", encoding="utf-8") as dropped:
            dropped.write(name + "\n")
        return True

    def note(self, name, words):
        with open(self.folder / "calls", "a", encoding="utf-8") as calls:
            calls.write(f"{name} {words[2][:40] if len(words) > 2 else words}\n")

    def asked(self, words):
        with open(self.folder / "questions", "a", encoding="utf-8") as questions:
            questions.write(" ".join(words) + "\n")

    def environment(self, name):
        home = self.folder / "home" / name
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o755)
        return {"PATH": os.environ["PATH"], "HOME": str(home)}


class Process:
    """One process in a pod. `receive` returns bytes of its input, b"" at the end; `send` takes a channel (1, 2) and bytes."""

    def __init__(self, pods, name, words, receive, send):
        self.pods, self.name, self.words = pods, name, words
        self.receive, self.send = receive, send
        self.way = pods.way(name, words)
        self.moved = time.monotonic()
        self.over = threading.Event()
        self.result = None
        self.lock = threading.Lock()

    def finish(self, result):
        with self.lock:
            if self.result is None:
                self.result = result
        self.over.set()

    def run(self):
        """("ended", code), ("cut",) or ("abort",)."""
        self.pods.note(self.name, self.words)
        if self.way.get("orphan"):
            # Both ends of its input and output are its own: it sees no end and no broken pipe, whoever is gone.
            ends = [self.pods.folder / f"{name}-{os.getpid()}-{threading.get_ident()}" for name in ("in", "out")]
            for end in ends:
                os.mkfifo(end)
            own = [os.open(end, os.O_RDWR) for end in ends]
            child = subprocess.Popen(self.words, stdin=own[0], stdout=own[1], stderr=subprocess.DEVNULL,
                                     env=self.pods.environment(self.name), cwd="/", start_new_session=True)
            stdin = os.fdopen(own[0], "wb", buffering=0)
            child.stdout = open(ends[1], "rb", buffering=0)
            child.stderr = open(os.devnull, "rb", buffering=0)
            os.close(own[1])
        else:
            child = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env=self.pods.environment(self.name), cwd="/", bufsize=0, start_new_session=True)
            stdin = child.stdin
        self.child = child
        inward = threading.Thread(target=self.inward, args=(stdin,), daemon=True)
        outward = [threading.Thread(target=self.outward, args=(stream, channel), daemon=True)
                   for stream, channel in ((child.stdout, 1), (child.stderr, 2))]
        watch = threading.Thread(target=self.watch, daemon=True)
        for thread in (inward, *outward, watch):
            thread.start()
        threading.Thread(target=self.wait, args=(child, outward), daemon=True).start()
        self.over.wait()
        if self.result[0] != "ended" and not self.way.get("orphan"):
            # What is between them closes the input of a process whose stream is gone.
            try:
                stdin.close()
            except OSError:
                pass
        return self.result

    def wait(self, child, outward):
        code = child.wait()
        for thread in outward:
            thread.join(5)
        self.finish(("ended", code if code >= 0 else 128 - code))

    def happens(self, then):
        if then == "kill":
            # With all its processes, as when a pod is taken away.
            os.killpg(self.child.pid, signal.SIGKILL)
        elif then == "hang":
            self.way.entry["hangs"] = True
        else:
            self.finish((then,))

    def watch(self):
        done = False
        while not self.over.wait(LOOK):
            now = self.pods.way(self.name, self.words).get("now")
            if now and not done:
                done = True
                self.happens(now)
            idle = self.way.get("idle")
            if idle and time.monotonic() - self.moved > idle:
                self.happens(self.way.get("then", "cut"))
                return

    def inward(self, stdin):
        left = self.way.get("stdin")
        while True:
            data = self.receive()
            self.moved = time.monotonic()
            if self.way.get("hangs"):
                # Nor does the end of its input arrive.
                if not data:
                    return
                continue
            if not data:
                break
            if left is not None:
                data, left = data[:left], max(0, left - len(data))
            try:
                while data:
                    data = data[stdin.write(data):]
            except OSError:
                return
            if left == 0:
                if self.way.get("then"):
                    self.happens(self.way.get("then"))
                break
        if not self.way.get("orphan"):
            try:
                stdin.close()
            except OSError:
                pass

    def outward(self, stream, channel):
        left = self.way.get("stdout") if channel == 1 else None
        while True:
            data = os.read(stream.fileno(), CHUNK)
            if not data:
                return
            self.moved = time.monotonic()
            if self.way.get("hangs"):
                continue
            reached = left is not None and len(data) >= left
            if left is not None:
                data, left = data[:left], left - len(data)
            if self.result is None:
                self.send(channel, data)
            if reached:
                left = None
                self.happens(self.way.get("then", "cut"))
                if self.result is not None:
                    return
