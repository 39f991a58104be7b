"""A lab: its image, its fabric, its guests, and the files by which others reach them.

Files of a running lab: `ssh_config` and `known_hosts` (strict, with every host's real key), `keys/`, `hosts/I/`,
`shape` (how many hosts, NICs, which MTU, which are Arm, which series of kernels). The folder's existence is the lock that lets only one lab be up in it.
"""
import json
import shutil
import socket
import subprocess
import threading
import time

from . import prepare
from .architecture import ARM, BOTH, X86
from .clock import Reading
from .errors import LabError, Usage
from .fabric import Fabric, check_privileges
from .machine import Machine
from .process import run
from .settings import SSH_PORT, private_directory

SSH_CONFIG = """\
Host lab*
  User root
  Port {port}
  IdentityFile {directory}/keys/user
  IdentitiesOnly yes
  UserKnownHostsFile {directory}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  # On a loaded machine a guest that measures takes long to let somebody in.
  ConnectTimeout 45
  LogLevel ERROR
  # The default key exchange costs an interpreted guest most of a second.
  KexAlgorithms curve25519-sha256
"""


# Boots of a guest whose clock runs wrong, before the lab is given up.
TRIES = 3


class Lab:
    """The lab that the settings describe, running or not."""

    def __init__(self, settings, say):
        self.settings = settings
        self.say = say
        self.fabric = Fabric(settings)

    # Preparing.

    def check(self, is_arm=False):
        """Raise Unavailable, with the reason, where no lab can run, or none with Arm guests."""
        prepare.check(BOTH if is_arm else [X86])
        check_privileges()

    def build(self, is_arm=False):
        """Bring kernels and images up to date, those of Arm guests if there are any."""
        for architecture in BOTH if is_arm else [X86]:
            prepare.prepare(self.settings, architecture, self.say)

    # Life.

    def up(self, hosts, nics, mtu, arm=()):
        """Start everything and return when a real ssh worked on every host. `arm`: numbers of the hosts that are Arm."""
        self.check(bool(arm))
        self.build(bool(arm))
        directory = self.settings.directory
        if directory.exists():
            raise LabError(f"{directory} exists: a lab is up there, or was not taken down. `lab down` ends it; "
                           "RAILGAUGE_LAB_BLOCK and RAILGAUGE_LAB_DIR make room for a second one")
        self.fabric.must_be_free()
        private_directory(directory)
        # From here on whatever is there is this lab's, and goes if something fails.
        try:
            shape = {"hosts": hosts, "nics": nics, "mtu": mtu, "arm": sorted(set(arm)), "kernel": self.settings.series}
            (directory / "shape").write_text(json.dumps(shape) + "\n")
            self.write_access(hosts)
            self.fabric.up(nics)
            for machine in self.machines():
                self.boot(machine)
            self.wait(self.machines())
        except BaseException:
            self.down()
            raise

    def boot(self, machine):
        shape = self.shape()
        machine.start(self.architecture(machine.host), shape, lambda nic: self.fabric.plug(machine.host, nic))

    def start(self, host):
        """Boot a host that was killed; its links come back whole."""
        machine = self.machine(host)
        if machine.pid() is not None:
            raise Usage(f"{machine.name} is running")
        self.boot(machine)
        self.wait([machine])

    def wait(self, machines):
        """Return when ssh works on all of these hosts; they come up side by side."""
        begun, failures = time.monotonic(), []

        def one(machine):
            try:
                deadline = begun + self.settings.boot_timeout
                self.wait_for(machine, deadline)
                for _ in range(1, TRIES):
                    if not self.runs_fast(machine):
                        break
                    self.say(f"{machine.name} has a clock that runs fast and is booted anew")
                    machine.kill()
                    self.boot(machine)
                    self.wait_for(machine, deadline)
                else:
                    if self.runs_fast(machine):
                        raise LabError(f"{machine.name} booted {TRIES} times with a clock that runs fast: "
                                       "this machine is too busy for a lab")
                self.say(f"{machine.name} ready after {time.monotonic() - begun:.1f} s")
            except LabError as error:
                failures.append(str(error))

        threads = [threading.Thread(target=one, args=[machine]) for machine in machines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise LabError("\n".join(failures))

    def wait_for(self, machine, deadline):
        """QEMU accepts connections before the guest listens, so only a login that works is proof."""
        while time.monotonic() < deadline:
            if machine.pid() is None:
                raise LabError(f"{machine.name} died while it booted:\n{machine.last_words()}")
            if sshd_greets(self.settings.ssh_address(machine.host)):
                done = subprocess.run(self.ssh_command(machine.host, ["true"]), stdin=subprocess.DEVNULL,
                                      capture_output=True, check=False)
                if done.returncode == 0:
                    return
            time.sleep(0.1)
        raise LabError(f"{machine.name} did not let ssh in within {self.settings.boot_timeout:.0f} s:\n"
                       f"{machine.last_words()}")

    def runs_fast(self, machine):
        """Whether a guest that just booted claims to be older than its QEMU; `clock_trouble` starts from this reading."""
        reading = Reading.take(self.ssh_command(machine.host, []))
        if reading is None:
            raise LabError(f"{machine.name} let ssh in once and then no more:\n{machine.last_words()}")
        reading.save(machine.clock)
        return reading.older_than(machine.begun())

    def clock_trouble(self, machine):
        """What is wrong with the rate of a running guest's clock since it booted, in a list; a guest that ssh does not
        reach is passed over."""
        earlier = Reading.load(machine.clock)
        if earlier is None or machine.state() != "running":
            return []
        now = Reading.take(self.ssh_command(machine.host, []))
        complaint = now.complaint_since(earlier) if now else None
        return [complaint] if complaint else []

    def down(self):
        """End everything and remove every trace of the run; the cached image stays for the next."""
        for machine in self.machines(missing_ok=True):
            machine.kill()
        if self.settings.directory.exists() or not self.fabric.in_use():
            self.fabric.down()
        shutil.rmtree(self.settings.directory, ignore_errors=True)

    # Looking.

    def shape(self):
        """How many hosts and NICs, which MTU, which hosts are Arm."""
        try:
            return json.loads((self.settings.directory / "shape").read_text())
        except (OSError, ValueError):
            raise Usage(f"no lab is up in {self.settings.directory}; `lab up N` starts one") from None

    def machines(self, missing_ok=False):
        """The hosts, from the shape file or, after an accident, from what lies about."""
        if missing_ok:
            numbers = [int(path.name) for path in self.settings.directory.glob("hosts/*") if path.name.isdigit()]
        else:
            numbers = range(1, self.shape()["hosts"] + 1)
        return [Machine(self.settings, number) for number in numbers]

    def machine(self, host):
        if not 1 <= host <= self.shape()["hosts"]:
            raise Usage(f"there is no lab{host}: this lab has hosts 1 to {self.shape()['hosts']}")
        return Machine(self.settings, host)

    def architecture(self, host):
        """What a host is."""
        return ARM if host in self.shape()["arm"] else X86

    def nic(self, number):
        if not 0 <= number < self.shape()["nics"]:
            raise Usage(f"there is no NIC {number}: hosts of this lab have NICs 0 to {self.shape()['nics'] - 1}")
        return number

    def ssh_command(self, host, command):
        """Words that run a command on a host. All share one connection to it: a login costs an interpreted guest a second."""
        shared = [f"-oControlPath={self.machine(host).connection}", "-oControlMaster=auto", "-oControlPersist=yes"]
        return ["ssh", "-F", str(self.settings.ssh_config), *shared, f"lab{host}", *command]

    # Keys.

    def write_access(self, hosts):
        """Make every key of this lab and the ssh files that name them."""
        directory = self.settings.directory
        keys = private_directory(directory / "keys")
        known, aliases = [], []
        for name in ["user", *(f"host{host}" for host in range(1, hosts + 1))]:
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"lab-{name}", "-f", keys / name)
        for host in range(1, hosts + 1):
            address = self.settings.ssh_address(host)
            public = " ".join((keys / f"host{host}.pub").read_text().split()[:2])
            known.append(f"[{address}]:{SSH_PORT} {public}\n")
            aliases.append(f"Host lab{host}\n  HostName {address}\n")
        (directory / "known_hosts").write_text("".join(known))
        config = "".join(aliases) + SSH_CONFIG.format(port=SSH_PORT, directory=directory)
        self.settings.ssh_config.write_text(config)


def sshd_greets(address):
    """Whether an ssh server introduces itself there."""
    try:
        with socket.create_connection((address, SSH_PORT), timeout=5) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False
