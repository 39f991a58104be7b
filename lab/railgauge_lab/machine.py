"""One guest: its QEMU process, its files and what became of it.

Files of a guest, in hosts/I: `config` (read by the guest), `pid`, `begun` (when QEMU was started), `clock` (the guest's
first reading), `console`, `monitor` (a socket), `qemu.log`, and `killed`, which says that its death was wanted.
"""
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

from .errors import LabError
from .settings import SSH_PORT

# What a guest's console says when the guest, and not what runs on it, is at fault.
# Programs of the guest's own crash under an interpreter of processors too, perftest in Soft-RoCE's provider (rdma-core 44);
# one of railgauge's is its own fault.
TROUBLE = re.compile(r"Kernel panic|BUG: |Oops: |NETDEV WATCHDOG|Out of memory: |lab: .*"
                     r"|\b(?:sshd(?:-\w+)?|bash|busybox|ib_\w+)\[\d+\]:? (?:segfault|general protection|unhandled exception)")
NO_TROUBLE = re.compile(r"lab: booted")

# Seconds that a killed QEMU may take to give its memory back.
DIES_WITHIN = 60


class Machine:
    """A guest of a lab."""

    def __init__(self, settings, host):
        self.settings = settings
        self.host = host
        self.directory = settings.host_directory(host)
        self.clock = self.directory / "clock"
        # The socket of the connection that all logins of this tool share. ssh ends it with the guest.
        self.connection = self.directory / "connection"

    @property
    def name(self):
        return f"lab{self.host}"

    def start(self, architecture, shape, plug):
        """Boot; `plug(nic)` gives the file of the tap that the NIC is plugged into."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "killed").unlink(missing_ok=True)
        (self.directory / "monitor").unlink(missing_ok=True)
        facts = {"HOST": self.host, "HOSTS": shape["hosts"], "NICS": shape["nics"], "MTU": shape["mtu"],
                 "BLOCK": self.settings.block}
        (self.directory / "config").write_text("".join(f"{key}={value}\n" for key, value in facts.items()))
        taps = [plug(nic) for nic in range(shape["nics"])]
        self.clock.unlink(missing_ok=True)
        (self.directory / "begun").write_text(f"{time.monotonic()}\n")
        with open(self.directory / "qemu.log", "wb") as log:
            process = subprocess.Popen(self.command(architecture, taps), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True, pass_fds=taps)
        for tap in taps:
            os.close(tap)
        (self.directory / "pid").write_text(f"{process.pid}\n")
        # Between fork and exec a process has no command line to be known by.
        while self.pid() is None and process.poll() is None:
            time.sleep(0.005)

    def command(self, architecture, taps):
        """QEMU's command line."""
        keys, image = self.settings.directory / "keys", architecture.folder(self.settings.cache)
        words = [architecture.qemu, "-name", self.name, *architecture.board, *self.interpreter(),
                 "-m", self.settings.memory_mib, "-smp", self.processors(), "-nodefaults", "-no-user-config",
                 "-display", "none", "-no-reboot", "-serial", f"file:{self.directory}/console",
                 "-qmp", f"unix:{self.directory}/monitor,server,nowait",
                 "-kernel", image / "kernel" / architecture.kernel, "-initrd", image / "initramfs",
                 "-append", architecture.kernel_line]
        answers = {"config": self.directory / "config", "host_key": keys / f"host{self.host}",
                   "user_key": keys / "user", "user_key.pub": keys / "user.pub"}
        for key, path in answers.items():
            words += ["-fw_cfg", f"name=opt/lab/{key},file={path}"]
        # Management: sshd appears on a loopback address of this machine; the guest reaches nothing outside.
        words += ["-netdev", f"user,id=management,restrict=on,ipv6=off,hostfwd={self.forwarding()}",
                  "-device", f"virtio-net-pci,netdev=management,mac={self.mac(0)},romfile="]
        for nic, tap in enumerate(taps):
            words += ["-netdev", f"tap,id=rail{nic},fd={tap},vhost=off",
                      "-device", f"virtio-net-pci,id=nic{nic},netdev=rail{nic},mac={self.mac(nic + 1)},"
                                 "host_mtu=9000,romfile="]
        return [str(word) for word in words]

    def processors(self):
        """Without a second possible CPU, QEMU before 8.1 leaves out memory barriers that the device emulation needs."""
        return f"{self.settings.processors},maxcpus={max(2, self.settings.processors)}"

    def interpreter(self):
        """A thread for each processor; or, counted, one for all of them and 2 ns of the guest's time per instruction."""
        if self.settings.counted:
            return ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=on"]
        return ["-accel", "tcg,thread=multi"]

    def forwarding(self):
        return f"tcp:{self.settings.ssh_address(self.host)}:{SSH_PORT}-:22"

    def mac(self, interface):
        """A locally administered address that says lab, interface and host."""
        return f"52:54:00:{self.settings.block:02x}:{interface:02x}:{self.host:02x}"

    def pid(self):
        """Process id of this guest's QEMU, or None; a recycled id is not mistaken for it."""
        try:
            pid = int((self.directory / "pid").read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, ValueError, IndexError):
            return None
        mine = f"file:{self.directory}/console".encode() in words
        return pid if mine and state != "Z" else None

    def begun(self):
        """When QEMU was started, by this machine's monotonic clock."""
        return float((self.directory / "begun").read_text())

    def paused(self):
        pid = self.pid()
        return pid is not None and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"

    def kill(self):
        """Pull the power cord."""
        pid = self.pid()
        (self.directory / "killed").touch()
        if pid is not None:
            end(self.name, pid)
        self.hang_up()
        (self.directory / "pid").unlink(missing_ok=True)

    def pause(self, stop):
        pid = self.pid()
        if pid is None:
            raise LabError(f"{self.name} is not running")
        if stop:
            self.hang_up()
        os.kill(pid, signal.SIGSTOP if stop else signal.SIGCONT)

    def hang_up(self):
        """Have the next login make a connection of its own."""
        self.connection.unlink(missing_ok=True)

    def state(self):
        """`running`, `paused`, `killed` (on purpose) or `died`."""
        if self.pid() is not None:
            return "paused" if self.paused() else "running"
        return "killed" if (self.directory / "killed").exists() else "died"

    def trouble(self):
        """Lines of the console that speak of the guest's own failure."""
        try:
            lines = (self.directory / "console").read_text(errors="replace").splitlines()
        except OSError:
            return []
        return [line for line in lines if TROUBLE.search(line) and not NO_TROUBLE.search(line)]

    def last_words(self, count=12):
        """The end of the console and of QEMU's own log, for a failure's message."""
        said = []
        for name in ("qemu.log", "console"):
            path = self.directory / name
            if path.exists():
                said += path.read_text(errors="replace").splitlines()[-count:]
        return "\n".join(f"    {line}" for line in said)

    def let_in(self, wanted):
        """Have connections to the guest's ssh port reach it, or be refused."""
        def ask_monitor(command):
            return self.monitor("human-monitor-command", **{"command-line": command}).strip()

        def accepting():
            return "HOST_FORWARD" in ask_monitor("info usernet")

        if not wanted:
            self.hang_up()
        rule = self.forwarding()
        if accepting() != wanted:
            listener = rule.split("-", 1)[0]
            said = ask_monitor(f"hostfwd_add management {rule}" if wanted else f"hostfwd_remove management {listener}")
            if accepting() != wanted:
                raise LabError(f"{self.name}: QEMU does not {'accept' if wanted else 'refuse'} ssh: {said}")

    def monitor(self, command, **arguments):
        """Have QEMU obey a command of its machine protocol."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(10)
                link.connect(str(self.directory / "monitor"))
                with link.makefile("rw") as lines:
                    json.loads(lines.readline())  # the greeting
                    ask(lines, "qmp_capabilities", {})
                    return ask(lines, command, arguments)
        except (OSError, ValueError) as error:
            raise LabError(f"{self.name}: QEMU's monitor does not answer: {error}") from error


def ask(lines, command, arguments):
    """One command of QEMU's machine protocol; events that come in between are skipped."""
    lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    lines.flush()
    while True:
        answer = json.loads(lines.readline())
        if "error" in answer:
            raise LabError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
        if "return" in answer:
            return answer["return"]


def end(name, pid):
    """Kill a QEMU and wait until it holds nothing any more.

    A process that dies gives its memory back before its sockets. Until then it has no command line and may be called a
    zombie, and its ports still take connections. Its descriptor becomes readable after that.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        poller = select.poll()
        poller.register(process, select.POLLIN)
        if not poller.poll(DIES_WITHIN * 1000):
            raise LabError(f"{name}: QEMU does not die")
    except ProcessLookupError:
        pass
    finally:
        os.close(process)
