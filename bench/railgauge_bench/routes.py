"""What ibnetdiscover and dump_fts print, read once more: to judge what railgauge makes of them by other code than its own."""
import re

# Gbit/s of a lane (InfiniBand Architecture Specification, rates after encoding as its users count them).
LANES = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR": 14.0625, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200}
NODE = re.compile(r'^(Switch|Ca)\s+\d+ "([^"]+)"\s+# "([^"]*)"')
PORT = re.compile(r'^\[(\d+)\](?:\(\w+\))?\s+"([^"]+)"\[(\d+)\](?:\(\w+\))?\s+#(?: lid (\d+) lmc \d+)? "[^"]*" lid \d+ (\d+)x([A-Z]+)')
TABLE = re.compile(r"^Unicast lids .* guid 0x(\w+) ")
ENTRY = re.compile(r"^0x(\w+) (\d+) :")


class Fabric:
    """Hosts' ports, switches and forwarding tables."""

    def __init__(self, discovered, tables):
        # By node: its name; by (node, port): (node, port) at the other end; by (node, port): Gbit/s.
        self.names, self.far, self.rate, self.lids = {}, {}, {}, {}
        self.tables = {}
        node = None
        for line in discovered.splitlines():
            if found := NODE.match(line):
                kind, node, name = found.groups()
                self.names[node] = name
            elif node is not None and (found := PORT.match(line)):
                port, other, far, own, lanes, speed = found.groups()
                self.far[node, int(port)] = (other, int(far))
                self.rate[node, int(port)] = int(lanes) * LANES[speed]
                # Ports of hosts say their own LID.
                if own is not None:
                    self.lids[node] = int(own)
        for line in tables.splitlines():
            if found := TABLE.match(line):
                table = self.tables.setdefault("S-" + found[1], {})
            elif found := ENTRY.match(line):
                table[int(found[1], 16)] = int(found[2])
        self.ends = {name: node for node, name in self.names.items() if node.startswith("H-")}

    def leaf(self, end):
        """The switch of a host's port."""
        return self.far[end, 1][0]

    def links(self):
        """Links between switches, each direction by itself: the end that a flow leaves."""
        is_switch = lambda node: node.startswith("S-")
        return sorted(plug for plug, (other, _) in self.far.items() if is_switch(plug[0]) and is_switch(other))

    def route(self, start, end):
        """The links between switches from one host's port to another, or None where the tables do not lead there."""
        at, passed = self.leaf(start), []
        while len(passed) < 16:
            port = self.tables.get(at, {}).get(self.lids[end])
            if port is None or (at, port) not in self.far:
                return None
            other = self.far[at, port][0]
            if other == end:
                return passed
            if other.startswith("H-"):
                return None
            passed.append((at, port))
            at = other
        return None

    def loaded(self, rounds, share):
        """Links that the flows of some round load to this share of their rate, each flow at the rate of the slowest link on its way."""
        loaded = set()
        for flows in rounds:
            sums = {}
            for start, end in flows:
                route = self.route(start, end)
                if route is None:
                    continue
                rate = min(self.rate[plug] for plug in [(start, 1), *route, self.far[end, 1]])
                for plug in route:
                    sums[plug] = sums.get(plug, 0.0) + rate
            loaded |= {plug for plug, sum_ in sums.items() if sum_ >= share * self.rate[plug] * (1 - 1e-9)}
        return loaded

    def passable(self):
        """Links that the tables give to some pair of hosts' ports."""
        first = {}
        for end in self.ends.values():
            first.setdefault(self.leaf(end), end)
        # Tables ask for the destination alone: one end speaks for its leaf.
        pairs = ((start, end) for leaf, start in first.items() for end in self.ends.values() if self.leaf(end) != leaf)
        return {plug for start, end in pairs for plug in self.route(start, end) or ()}

    def at_least(self, both_ways, passable):
        """Rounds that must be: every link out of a leaf takes a flow from it, every link into it a flow to it, and each of its ports is in one flow
        of a round, which runs one way or both. Rates are taken to be alike."""
        out, into, ends = {}, {}, {}
        for end in self.ends.values():
            ends[self.leaf(end)] = ends.get(self.leaf(end), 0) + 1
        for plug in passable:
            for leaf, count in ((plug[0], out), (self.far[plug][0], into)):
                count[leaf] = count.get(leaf, 0) + 1
        flows = lambda leaf: (max if both_ways else sum)([out.get(leaf, 0), into.get(leaf, 0)])
        return max(1, *(-(-flows(leaf) // count) for leaf, count in ends.items()))
