"""Agents led without a controller: their conversation, and a link between two of them."""
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def build():
    """The agent, built as users get it, or the one that RAILGAUGE_AGENT names."""
    if named := os.environ.get("RAILGAUGE_AGENT"):
        return Path(named).resolve()
    subprocess.run(["cargo", "build", "-q", "--profile", "agent", "-p", "railgauge-agent"], cwd=ROOT, check=True)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "agent" / "railgauge-agent"


def protocol():
    """The version of the conversation that this checkout's agents speak. It stands in one place only."""
    return int(re.search(r"^pub const PROTOCOL: u32 = (\d+);$", (ROOT / "wire/src/lib.rs").read_text(), re.MULTILINE)[1])


class Agent:
    """An agent that a command starts, and the conversation with it. What fails ends the benchmark."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"\x01railgauge-agent\n":
            sys.exit(f"the agent does not greet: {' '.join(map(str, command))}")
        self.next, self.kept = 0, {}
        self.ask({"Hello": {"protocol": protocol(), "run_id": "bench", "host": "bench"}})

    def post(self, ask):
        """Sends a request and returns its number."""
        self.next += 1
        frame = json.dumps({"id": self.next, "ask": ask}).encode()
        self.process.stdin.write(struct.pack(">I", len(frame)) + frame)
        self.process.stdin.flush()
        return self.next

    def wait(self, number):
        """The answer to request `number`."""
        while number not in self.kept:
            head = self.process.stdout.read(4)
            if len(head) < 4:
                sys.exit("the agent ended")
            reply = json.loads(self.process.stdout.read(struct.unpack(">I", head)[0]))["Reply"]
            self.kept[reply["id"]] = reply["outcome"]
        outcome = self.kept.pop(number)
        if "Err" in outcome:
            sys.exit(f"the agent failed: {outcome['Err']}")
        return outcome["Ok"]

    def ask(self, ask):
        return self.wait(self.post(ask))

    def end(self):
        self.ask("Bye")
        self.process.wait()


class Link:
    """A link between two agents. It stays up until it is closed, as in a run."""

    numbers = 0

    def __init__(self, agents, specs):
        """Opens and joins; `specs` are the wire's LinkSpec of both ends, without their roles."""
        Link.numbers += 1
        self.number, (self.near, self.far) = Link.numbers, agents
        common = {"service": "rc", "port": 1, "memory": "host", "gpu": None, "gpu_path": None, "token": "bench"}
        opened = [
            agent.ask({"Open": {"link": self.number, "spec": {**common, **spec, "role": role}}})["Opened"]
            for agent, role, spec in zip(agents, ("initiator", "responder"), specs)
        ]
        joined = self.far.post({"Join": {"link": self.number, "peer": opened[0]["endpoint"]}})
        self.settings = self.near.ask({"Join": {"link": self.number, "peer": opened[1]["endpoint"]}})["Joined"]["settings"]
        self.far.wait(joined)

    def step(self, agent, step):
        return agent.ask({"Step": {"link": self.number, "step": step, "limit_ms": 120_000}})

    def measure(self, op, aim, size, window, warm_up=0):
        """One timed pass; the accounts of both ends. `window` is the wire's Window, times are nanoseconds."""
        self.step(self.far, {"Serve": {"op": op, "metric": aim, "size": size}})
        timing = {"op": op, "metric": aim, "size": size, "window": window, "warm_up": warm_up, "start_at": None,
                  "bidirectional": False}
        near = self.step(self.near, {"Time": timing})["Stepped"]["Measured"]
        far = self.far.ask({"Stop": {"link": self.number}})["Stepped"]["Measured"]
        return near, far

    def close(self):
        for agent in (self.near, self.far):
            agent.ask({"Close": {"link": self.number}})
