"""InfiniBand fabrics that exist only in ibsim: fat trees, brought up by OpenSM, read by ibnetdiscover and dump_fts.

Nothing needs root or a device. ibsim answers on an abstract socket with a name of its own, so several may run at once; it and OpenSM end by
process number with the object.
"""
import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

NEEDED = {"ibsim": "ibsim-utils", "opensm": "opensm", "ibnetdiscover": "infiniband-diags", "dump_fts": "infiniband-diags"}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# Where Debian's ibsim-utils puts what stands in for /dev/infiniband/umad*.
STANDS_IN = sorted(pathlib.Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
# Seconds to bring up a thousand hosts on a busy machine, and to read them.
PATIENCE = 300
# As ibsim and the InfiniBand specification code them (PortInfo: LinkWidthEnabled, LinkSpeedExtEnabled).
WIDTHS = {1: 1, 4: 2, 8: 4, 12: 8, 2: 16}
SPEEDS = {"FDR": 1, "EDR": 2, "HDR": 4}
# GUIDs that no maker has (the local bit is set); a port's GUID is its node's with the number of the port added.
HOSTS, SWITCHES = 0x0200_0000_0001_0000, 0x0200_0000_0100_0000


@dataclasses.dataclass
class Node:
    """A switch or an HCA: its name, its GUID, and by port the name and port at the other end."""

    name: str
    guid: int
    ports: int
    is_switch: bool
    far: dict = dataclasses.field(default_factory=dict)

    @property
    def ident(self):
        return f"{'S' if self.is_switch else 'H'}-{self.guid:016x}"


class Tree:
    """A fat tree of `hosts` hosts with `rails` HCAs each, of switches with `radix` ports.

    Hosts stand in units of radix/2. A unit has a leaf for each rail; host h of a unit is on port h+1 of each. With two levels the other half
    of a leaf's ports is spread evenly over the spines. With three levels radix/2 leaves and as many spines are a pod, and spine j of
    every pod is joined to the cores of group j. Where `hosts` fill no unit or pod, ports stay empty.
    """

    def __init__(self, hosts, rails=1, radix=8, levels=2):
        if radix < 4 or radix % 2 or radix > 64 or hosts < 1 or rails < 1 or levels not in (2, 3):
            raise ValueError("a fat tree has an even radix of 4 to 64, at least one host and rail, two or three levels")
        self.nodes = {}
        # Ends in the words of ibsim's file: options by (name, port).
        self.options = {}
        self.width, self.speed, self.radix = 4, "HDR", radix
        half = radix // 2
        units = -(-hosts // half)
        leaves = [self._switch(f"leaf{number + 1}") for number in range(units * rails)]
        for host in range(hosts):
            for rail in range(rails):
                hca = self._add(f"gpu{host + 1:04} mlx5_{rail}", HOSTS + 0x10 * (host * rails + rail), 1, False)
                self.join(hca, 1, leaves[host // half * rails + rail], host % half + 1)
        if levels == 2:
            self._over(leaves, self._spines("spine", len(leaves), half), half)
            return
        pods = [leaves[at : at + half] for at in range(0, len(leaves), half)]
        groups = [[] for _ in range(half)]
        for number, pod in enumerate(pods):
            spines = [self._switch(f"pod{number + 1}spine{at + 1}") for at in range(half)]
            self._over(pod, spines, half)
            for at, spine in enumerate(spines):
                groups[at].append(spine)
        for number, group in enumerate(groups):
            self._over(group, self._spines(f"core{number + 1}n", len(group), half), half)

    def _add(self, name, guid, ports, is_switch):
        self.nodes[name] = Node(name, guid, ports, is_switch)
        return name

    def _switch(self, name):
        count = sum(node.is_switch for node in self.nodes.values())
        return self._add(name, SWITCHES + 0x100 * count, self.radix, True)

    def _spines(self, name, below, half):
        """As few switches as take all uplinks of the ones below, evenly."""
        if below > self.radix:
            raise ValueError(f"{below} switches below spines of {self.radix} ports: take a larger radix or a level more")
        few = [count for count in range(1, half + 1) if half % count == 0 and below * half // count <= self.radix]
        return [self._switch(f"{name}{number + 1}") for number in range(min(few))]

    def _over(self, below, above, half):
        """Joins the upper ports of each switch below to those above, in turn; a switch above has its links in blocks by switch below."""
        each = half // len(above)
        for number, switch in enumerate(below):
            for uplink in range(half):
                spine, line = uplink % len(above), uplink // len(above)
                self.join(switch, half + 1 + uplink, above[spine], number * each + line + 1)

    def join(self, one, port, other, far):
        """Plugs a cable in at both ends; what was there is unplugged."""
        for name, at in ((one, port), (other, far)):
            if old := self.nodes[name].far.pop(at, None):
                self.nodes[old[0]].far.pop(old[1])
        self.nodes[one].far[port] = (other, far)
        self.nodes[other].far[far] = (one, port)

    def swap(self, one, port, other, far):
        """Exchanges the cables at two ports."""
        there, here = self.nodes[one].far[port], self.nodes[other].far[far]
        self.join(one, port, *here)
        self.join(other, far, *there)

    def slow(self, name, port, width=4, speed="HDR"):
        """Makes one link narrower or slower."""
        for end in ((name, port), self.nodes[name].far[port]):
            self.options[end] = (width, speed)

    def text(self):
        """The file ibsim reads."""
        lines = []
        # The first host is where programs are attached if they do not say.
        for node in sorted(self.nodes.values(), key=lambda node: node.is_switch):
            kind = "switch" if node.is_switch else "ca"
            lines += ["", f"sysimgguid={node.guid:#x}", f"{kind}guid={node.guid:#x}"]
            lines.append(f'{"Switch" if node.is_switch else "Ca"}\t{node.ports} "{node.ident}"\t\t# "{node.name}"')
            for port, (name, far) in sorted(node.far.items()):
                width, speed = self.options.get((node.name, port), (self.width, self.speed))
                lines.append(f'[{port}]\t"{self.nodes[name].ident}"[{far}]\tw={WIDTHS[width]} s=7 e={SPEEDS[speed]}')
        return "\n".join([*lines, ""])


def missing():
    """The packages that are not installed."""
    absent = {package for name, package in NEEDED.items() if shutil.which(name, path=PATH) is None}
    return sorted(absent | ({"ibsim-utils"} if not STANDS_IN else set()))


class Subnet:
    """A tree that ibsim and OpenSM hold up."""

    def __init__(self, tree, engine="ftree"):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="railgauge-subnet-"))
        self.started = []
        nodes = list(tree.nodes.values())
        self.environment = {
            **os.environ,
            "PATH": PATH,
            "LC_ALL": "C",
            "IBSIM_SOCKNAME": self.place.name,
            "SIM_HOST": next(node.ident for node in nodes if not node.is_switch),
            "OSM_CACHE_DIR": str(self.place),
            "OSM_TMP_DIR": str(self.place),
        }
        for name in ("IBSIM_SERVER_NAME", "IBSIM_SERVER_PORT"):
            self.environment.pop(name, None)
        (self.place / "net").write_text(tree.text())
        # Its own limits, or more.
        ports = sum(node.ports + 1 for node in nodes)
        limits = ["-N", str(max(2048, len(nodes))), "-S", str(max(256, len(nodes))), "-P", str(max(13312, ports))]
        try:
            self._start(["ibsim", "-s", "-n", *limits, "net"], "ibsim.log", "Network simulator ready")
            # -d 2: its log is written line by line, and not when a buffer is full.
            self._start(["opensm", "-f", "opensm.log", "-d", "2", "-s", "0", "-R", engine], "opensm.out", "SUBNET UP", "opensm.log")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def simulated(self):
        """What a program needs beside its usual environment to be on this subnet."""
        return {name: value for name, value in self._simulated().items() if os.environ.get(name) != value and name != "PATH"}

    def _simulated(self):
        return {**self.environment, "LD_PRELOAD": str(STANDS_IN[0])}

    def _start(self, command, log, until, where=None):
        """Starts a daemon whose output goes to `log` and waits for what it says, there or in a log of its own, when it is up."""
        with open(self.place / log, "wb") as out:
            environment = self.environment if command[0] == "ibsim" else self._simulated()
            program = shutil.which(command[0], path=PATH)
            daemon = subprocess.Popen([program, *command[1:]], cwd=self.place, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                      stderr=subprocess.STDOUT)
        self.started.append(daemon)
        end = time.monotonic() + PATIENCE
        while until not in self._said(where or log):
            if daemon.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} did not come up: {self._said(log)[-2000:]}")
            time.sleep(0.05)

    def _said(self, log):
        path = self.place / log
        return path.read_text(errors="replace") if path.exists() else ""

    def _run(self, command, check=True):
        program = shutil.which(command[0], path=PATH)
        return subprocess.run([program, *command[1:]], cwd=self.place, env=self._simulated(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=check)

    def discovered(self, *options):
        """What ibnetdiscover prints."""
        return self._run(["ibnetdiscover", *options]).stdout

    def tables(self, *options):
        """What dump_fts prints: the linear forwarding tables."""
        return self._run(["dump_fts", *options]).stdout

    def old_tables(self):
        """The same by the old name of the tool, which adds a warning."""
        return self._run(["dump_lfts"]).stdout

    def close(self):
        """Ends the daemons and removes their files."""
        for daemon in reversed(self.started):
            daemon.terminate()
            try:
                daemon.wait(3)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.started = []
        shutil.rmtree(self.place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Writes fabric.txt (ibnetdiscover) and lfts.txt (dump_fts) of a simulated fat tree.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rails", type=int, default=1)
    parser.add_argument("--radix", type=int, default=16)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--engine", default="ftree", help="routing engine of OpenSM: ftree, minhop, updn")
    parser.add_argument("--swap", nargs=4, metavar=("HOST", "RAIL", "HOST", "RAIL"), action="append", default=[],
                        help="exchange the cables of two HCAs, such as gpu0003 0 gpu0003 1")
    parser.add_argument("--slow", nargs=2, metavar=("SWITCH", "PORT"), action="append", default=[], help="run one link as 1xEDR")
    parser.add_argument("--then", nargs=argparse.REMAINDER, metavar="WORD", help="run this while the subnet is up; `environment` in the "
                        "directory has what a program of it needs, as NAME=VALUE")
    chosen = parser.parse_args()
    if absent := missing():
        print(f"cannot simulate a subnet: please install {' '.join(absent)}", file=sys.stderr)
        return 77
    tree = Tree(chosen.hosts, chosen.rails, chosen.radix, chosen.levels)
    for one, rail, other, far in chosen.swap:
        tree.swap(f"{one} mlx5_{rail}", 1, f"{other} mlx5_{far}", 1)
    for name, port in chosen.slow:
        tree.slow(name, int(port), 1, "EDR")
    chosen.directory.mkdir(parents=True, exist_ok=True)
    with Subnet(tree, chosen.engine) as subnet:
        (chosen.directory / "fabric.txt").write_text(subnet.discovered())
        (chosen.directory / "lfts.txt").write_text(subnet.tables())
        if chosen.then:
            (chosen.directory / "environment").write_text("".join(f"{name}={value}\n" for name, value in subnet.simulated().items()))
            return subprocess.run(chosen.then, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
