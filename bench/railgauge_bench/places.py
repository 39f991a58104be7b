"""Where RDMA can be measured side by side on one machine: two hosts of the lab, and two devices inside one of them."""
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from .agent import ROOT

# Not the lab a developer may have up, and not that of the tests.
BLOCK = "78"
AGENT = "/root/railgauge-agent"

# Two Soft-RoCE devices on the ends of a cable inside one host. Packets between addresses of one host would take the
# loopback interface, on which there is no device: the rules let them out first, and take them in where they arrive.
CABLE = """
set -e
ip link add va type veth peer name vb
for end in va vb; do
    ip link set $end mtu 9000 up
    sysctl -q -w net.ipv4.conf.$end.accept_local=1 net.ipv4.conf.$end.rp_filter=0
done
sysctl -q -w net.ipv4.conf.all.rp_filter=0
ip addr add 10.99.0.1/32 dev va
ip addr add 10.99.0.2/32 dev vb
ip route add 10.99.0.2 dev va src 10.99.0.1 table 101
ip route add 10.99.0.1 dev vb src 10.99.0.2 table 101
ip rule add pref 1 iif va lookup local
ip rule add pref 2 iif vb lookup local
ip rule add pref 5 to 10.99.0.2 oif va lookup 101
ip rule add pref 6 to 10.99.0.1 oif vb lookup 101
ip rule add pref 10 lookup local
ip rule del pref 0
rdma link add rxea type rxe netdev va
rdma link add rxeb type rxe netdev vb
"""


@dataclass(frozen=True)
class Place:
    """Two ends that can be measured. `near` and `far` are commands to which a shell's words are appended; `server` is
    where the far end is reached by perftest's own connection."""

    name: str
    near: list
    far: list
    devices: tuple
    server: str
    # Both RoCE v2 over IPv4: Soft-RoCE lists the link-local address first.
    gid_index: int = 1
    # Whether one of the two may poll while the other works.
    polls: bool = True
    # An interpreted host may acknowledge late: 4.096 µs x 2^18 is about a second.
    timeout: int = 18

    def agents(self):
        """The commands that start an agent at either end."""
        return [*self.near, AGENT], [*self.far, AGENT]


def reached(config, hosts, agent, scratch):
    """Puts the agent into the hosts of a running lab; returns a function that gives the command for a host."""
    # One connection a host for everything: a handshake costs an interpreted processor most of a second.
    shared = ["-F", str(config), "-o", "ControlMaster=auto", "-o", f"ControlPath={scratch}/%n", "-o", "ControlPersist=60"]
    for host in range(1, hosts + 1):
        subprocess.run(["scp", "-q", *shared, str(agent), f"lab{host}:{AGENT}"], check=True)
    return lambda host: ["ssh", *shared, f"lab{host}"]


@contextmanager
def lab(hosts, processors, agent, scratch, counted=False):
    """A running lab with the agent in its hosts; yields a function that gives the command for a host."""
    environment = {**os.environ, "RAILGAUGE_LAB_BLOCK": BLOCK, "RAILGAUGE_LAB_CPUS": str(processors),
                   "RAILGAUGE_LAB_COUNTED": str(int(counted))}
    tool = [str(ROOT / "lab/lab")]
    up = subprocess.run([*tool, "up", str(hosts), "--while", str(os.getpid())], env=environment, check=False,
                        stdout=subprocess.DEVNULL)
    if up.returncode != 0:
        sys.exit("the lab of virtual hosts does not come up")
    try:
        folder = os.environ.get("RAILGAUGE_LAB_DIR") or f"/var/tmp/railgauge-lab-{BLOCK}"
        yield reached(f"{folder}/ssh_config", hosts, agent, scratch)
        died = subprocess.run([*tool, "status"], env=environment, check=False, stdout=subprocess.DEVNULL)
        if died.returncode != 0:
            sys.exit("a host of the lab died: the figures say nothing")
    finally:
        subprocess.run([*tool, "down"], env=environment, check=False)


@contextmanager
def two_hosts(agent, scratch):
    """Two hosts of one processor each, joined by a virtual switch."""
    with lab(2, 1, agent, scratch) as host:
        yield Place("two hosts", host(1), host(2), ("rxe0", "rxe0"), f"10.{BLOCK}.0.2")


def two_running_hosts(config, block, agent, scratch):
    """The same in a lab that runs already."""
    host = reached(config, 2, agent, scratch)
    return Place("two hosts", host(1), host(2), ("rxe0", "rxe0"), f"10.{block}.0.2")


@contextmanager
def one_host(agent, scratch, counted=False):
    """One host of two processors, with two devices joined by a veth pair."""
    with lab(1, 2, agent, scratch, counted) as host:
        # bash, not busybox's shell, which prefers applets of its own to iproute2.
        subprocess.run([*host(1), "bash -s"], input=CABLE.encode(), check=True)
        name = "counted" if counted else "one host"
        yield Place(name, host(1), host(1), ("rxea", "rxeb"), "127.0.0.1", polls=not counted)


def one_host_counted(agent, scratch):
    """The same with instructions for a clock, which tells the programs apart by what they execute and by nothing else."""
    return one_host(agent, scratch, counted=True)


PLACES = {"two-hosts": two_hosts, "one-host": one_host, "one-host-counted": one_host_counted}
# Where real time passes.
TIMED = ["two-hosts", "one-host"]
