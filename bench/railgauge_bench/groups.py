"""Collectives side by side: a group of ranks in one agent over TCP loopback, and what both all-reduce benchmarks share."""
import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from .agent import Agent, build
from .series import conclude, interleaved, median, noise, ratio

RANKS = 4
SIZES = [1 << power for power in range(10, 29, 2)]
BAR, GOAL = 1.0, 1.5
# A machine noisier than this cannot tell; its noise must not make a bar met.
MOST_NOISE = 0.05


def operations(size):
    """Operations of a batch, and batches. Short batches of what takes long: one of them finds the cores free."""
    return (20, 20) if size <= 64 << 10 else (10, 10) if size <= 1 << 20 else (4, 5) if size <= 16 << 20 else (2, 3)


class Group:
    """Ranks of one group over TCP loopback, threads of one agent, as on a host with so many `ranks_per_host`."""

    numbers = 1 << 20
    # Ranks on one host.
    siblings = RANKS

    def __init__(self, agents, size):
        """`agents` has one entry a rank."""
        self.agents = agents
        Group.numbers += RANKS
        self.links = range(Group.numbers, Group.numbers + RANKS)
        opened = self.all(lambda rank: {"OpenMember": {"spec": self.spec(rank, size)}})
        tickets = [each["MemberOpened"]["ticket"] for each in opened]
        self.all(lambda rank: {"JoinMember": {"tickets": tickets, "limit_ms": 60_000}})

    def spec(self, rank, size):
        link = {"role": "initiator", "transport": "tcp", "service": "rc", "device": None, "port": 1, "address": "127.0.0.1",
                "memory": "host", "gpu": None, "gpu_path": None, "qps": 1, "max_size": size, "token": "bench", "knobs": {}}
        return {"rank": rank, "ranks": RANKS, "transport": "tcp", "gpu": None, "library": None, "env": {}, "max_size": size,
                "siblings": self.siblings, "endpoint": {"host": "here", "link": link}}

    def all(self, ask):
        """Asks every rank, and waits for all answers."""
        posted = []
        for rank, (agent, link) in enumerate(zip(self.agents, self.links)):
            (name, body), = ask(rank).items()
            posted.append(agent.post({name: {"link": link, **body}}))
        return [agent.wait(number) for agent, number in zip(self.agents, posted)]

    def measure(self, size, batch, batches):
        """Microseconds per operation of each batch at its slowest rank; everything is verified."""
        # The agent cuts iterations into batches of 20; shorter ones are asked for one by one.
        return [time for _ in range(batches) for time in self.once(size, batch)]

    def once(self, size, iterations):
        options = {"datatype": "f32", "reduction": "sum", "in_place": False, "graph": False, "ranks_per_host": self.siblings}
        collective = {"op": "all_reduce", "metric": "bandwidth", "size": size, "options": options,
                    "window": {"Iterations": iterations}, "warm_up": 0, "verify": True, "seed": 1}
        accounts = self.all(lambda rank: {"MeasureMember": {"collective": collective, "limit_ms": 300_000}})
        accounts = [account["MemberMeasured"] for account in accounts]
        for account in accounts:
            if account["checked"].get("wrong") or account["checked"]["verified"] != 2 * size:
                sys.exit(f"wrong bytes: {account['checked']}")
        self.algorithm = accounts[0]["algorithm"]
        batches = zip(*(account["times"] for account in accounts))
        return [max(times) / accounts[0]["batch"] / 1e3 for times in batches]

    def close(self):
        self.all(lambda rank: {"Close": {}})


def main(name, about, version, compile_peer, peer, also=None):
    """A whole benchmark. `compile_peer(folder)` builds the peer's program; `peer(folder, size, batch, batches)` runs it
    and returns microseconds per operation and batch. `also` is a further series that is only reported: (name, run)."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", metavar="FILE", help="write the raw numbers as JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes, separated by commas")
    parser.add_argument("--agent", type=Path, help="an agent that is built already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compile_peer(Path(folder))
        agent = Agent([str(options.agent or build())])
        rows = [row(agent, Path(folder), size, options.rounds, peer, also) for size in map(int, options.sizes.split(","))]
        agent.end()
    gains = [each["gain"] for each in rows]
    met = all(each["gain"] >= BAR - min(each["noise"], MOST_NOISE) for each in rows)
    large = min((each["gain"] for each in rows if each["size"] >= 1 << 20), default=float("nan"))
    print(f"\nfrom 1 MiB: worst {large:.2f}, goal {GOAL:.2f} {'met' if large >= GOAL else 'not met'}; "
          f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {version}")
    if options.o:
        facts = {"kernel": os.uname().release, "peer": version, "ranks": RANKS, "rows": rows}
        Path(options.o).write_text(json.dumps(facts, indent=1) + "\n")
    return conclude(name, min(gains), median(gains), BAR, met)


def row(agent, folder, size, rounds, peer, also):
    """One size. Times of a run are its fastest batch: what takes the cores meanwhile only makes a batch slower."""
    batch, batches = operations(size)
    group = Group([agent] * RANKS, size)
    runs = {"ours": lambda: group.measure(size, batch, batches), "peer": lambda: peer(folder, size, batch, batches)}
    runs["again"] = runs["peer"]
    raw = {who: [] for who in runs}

    def measure(who):
        raw[who].append(runs[who]())
        return min(raw[who][-1])

    series = interleaved(rounds, measure)
    algorithm = group.algorithm
    group.close()
    gain = 1 / ratio(series)
    found = {"size": size, "gain": gain, "noise": noise(series, False), "algorithm": algorithm, "batches_us": raw}
    ours, theirs = median(series["ours"]), median(series["peer"] + series["again"])
    text = f"{size:>10} B: ours {ours:11.1f} µs ({algorithm}), peer {theirs:11.1f} µs, ratio {gain:5.2f}, noise {found['noise']:.3f}"
    if also:
        other = min(min(also[1](folder, size, batch, batches)) for _ in range(2))
        found[also[0]] = other
        text += f"; {also[0]} {other:11.1f} µs"
    print(text, flush=True)
    return found
