"""The virtual switches: one bridge per rail in a network namespace of the lab's own, one tap per host and rail.

QEMU itself stays in the machine's namespace, so that the guests' sshd can be reached on loopback. It gets the tap as
an open file, made inside the namespace; the tap lives as long as QEMU holds it.
"""
import ctypes
import errno
import fcntl
import os
import re
import struct
import time
from pathlib import Path

from .errors import LabError, Unavailable
from .process import run

LARGEST_MTU = 9000
CLONE_NEWNET = 0x40000000
# linux/if_tun.h
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
# How long a tap may still be held by a process that was killed.
RELEASE_SECONDS = 10


class Fabric:
    """The switches of one lab."""

    def __init__(self, settings):
        self.settings = settings
        self.namespace = settings.namespace

    def exists(self):
        return Path("/run/netns", self.namespace).exists()

    def in_use(self):
        """Whether some guest is plugged in; a tap lives no longer than its QEMU."""
        return self.exists() and f": {self.settings.port_prefix}" in self.ip("link").decode()

    def must_be_free(self):
        """Raise if the namespace is there: its lab may live in another folder and be none of ours."""
        if self.exists():
            raise LabError(f"network namespace {self.namespace} exists: another lab is up, or the rest of one. "
                           "RAILGAUGE_LAB_BLOCK and RAILGAUGE_LAB_DIR make room for a second lab; `lab down` with the "
                           "RAILGAUGE_LAB_DIR of the other one ends that")

    def up(self, nics):
        """Make the namespace and its bridges; it routes between the rails, as the spine of a cluster does."""
        run("ip", "netns", "add", self.namespace)
        self.ip("link", "set", "lo", "up")
        for nic in range(nics):
            bridge = f"rail{nic}"
            self.ip("link", "add", bridge, "type", "bridge", "forward_delay", 0, "mcast_snooping", 0)
            # Without IPv6 chatter of the switch itself, all counters are the hosts'.
            self.ip("link", "set", bridge, "mtu", LARGEST_MTU, "addrgenmode", "none", "up")
            self.ip("addr", "add", f"{self.settings.fabric_address(nic, 254)}/24", "dev", bridge)
        run("ip", "netns", "exec", self.namespace, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")

    def down(self):
        if self.exists():
            run("ip", "netns", "del", self.namespace)

    def plug(self, host, nic):
        """Make the switch port of a host's NIC and return the tap's file, to be inherited by QEMU."""
        name = self.settings.port(nic, host)
        tap = open_tap(self.namespace, name)
        self.ip("link", "set", name, "mtu", LARGEST_MTU, "addrgenmode", "none", "master", f"rail{nic}", "up")
        return tap

    def set_link(self, host, nic, state):
        """Cut or mend the cable: with a port down every frame is lost, and the host is not told."""
        self.ip("link", "set", self.settings.port(nic, host), state)

    def set_rate(self, host, nic, rate):
        """Shape what the switch sends to the host; None ends it."""
        port = self.settings.port(nic, host)
        if rate is None:
            self.tc("qdisc", "del", "dev", port, "root", ok=(0, 2))
        else:
            self.tc("qdisc", "replace", "dev", port, "root", *bucket(rate))

    def set_path(self, hosts, nic, rate, udp_port=None):
        """Shape what passes between two hosts, and nothing else; None ends it, and all shaping of these two ports.

        With a UDP source port only its packets are shaped, as if they went over one bad path of several.
        """
        only = ["match", "ip", "protocol", 17, "0xff", "match", "ip", "sport", udp_port, "0xffff"] if udp_port else []
        for towards, source in (hosts, reversed(hosts)):
            port = self.settings.port(nic, towards)
            self.tc("qdisc", "del", "dev", port, "root", ok=(0, 2))
            if rate is None:
                continue
            self.tc("qdisc", "add", "dev", port, "root", "handle", "1:", "htb", "default", 1)
            self.tc("class", "add", "dev", port, "parent", "1:", "classid", "1:1", "htb", "rate", "10gbit")
            self.tc("class", "add", "dev", port, "parent", "1:", "classid", "1:2", "htb", "rate", rate)
            self.tc("filter", "add", "dev", port, "parent", "1:", "protocol", "ip", "u32",
                    "match", "ip", "src", self.settings.fabric_address(nic, source), *only, "flowid", "1:2")

    def enter(self, command):
        """Become a program inside the namespace."""
        os.execvp("ip", ["ip", "netns", "exec", self.namespace, *command])

    def ip(self, *words):
        return run("ip", "-n", self.namespace, *words)

    def tc(self, *words, ok=(0,)):
        return run("tc", "-n", self.namespace, *words, ok=ok)


def bucket(rate):
    """tc's words for a shaped port: a bucket of one large frame or 2 ms, and 200 ms of queue, as a deep switch has."""
    bits = rate_in_bits(rate)
    burst = max(bits * 2 // 8000, 2 * LARGEST_MTU)
    return ["tbf", "rate", rate, "burst", burst, "limit", burst + max(bits // 40, 64 * LARGEST_MTU)]


def rate_in_bits(rate):
    """`40mbit` -> 40000000."""
    match = re.fullmatch(r"(\d+)(k|m|g)bit", rate)
    if not match:
        raise LabError(f"rate {rate}: a whole number with kbit, mbit or gbit is needed")
    return int(match[1]) * {"k": 10**3, "m": 10**6, "g": 10**9}[match[2]]


def attach(tap, name):
    """Bind an opened descriptor to the tap of this name. A process that was just killed may hold it for another moment:
    its threads let go of their descriptors one after the other."""
    until = time.monotonic() + RELEASE_SECONDS
    while True:
        try:
            fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.1)


def open_tap(namespace, name):
    """Create a tap interface in a namespace; the returned file descriptor keeps it alive."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor):
        if libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise LabError(f"cannot enter network namespace {namespace}: {os.strerror(ctypes.get_errno())}")

    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    inside = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        enter(inside)
        try:
            tap = os.open("/dev/net/tun", os.O_RDWR)
            attach(tap, name)
        except OSError as error:
            raise LabError(f"cannot make tap {name}: {error}") from error
        finally:
            enter(home)
    finally:
        os.close(inside)
        os.close(home)
    return tap


def check_privileges():
    """Raise Unavailable where this process may not make namespaces and taps."""
    if os.geteuid() != 0:
        raise Unavailable("the lab makes network namespaces and taps, which only root may")
    if not os.path.exists("/dev/net/tun"):
        raise Unavailable("there is no /dev/net/tun, so this machine (a container?) cannot make taps")
    probe = f"railgauge-probe{os.getpid()}"
    try:
        run("ip", "netns", "add", probe)
        run("ip", "-n", probe, "link", "add", "rail0", "type", "bridge")
    except LabError as error:
        raise Unavailable(f"this machine lets root make no network namespace with a bridge: {error}") from error
    finally:
        run("ip", "netns", "del", probe, ok=(0, 1, 255))
