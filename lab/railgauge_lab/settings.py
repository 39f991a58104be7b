"""Where one lab lives, which addresses and names it takes, and how its machines are built."""
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError, Usage

SSH_PORT = 2222
MOST_HOSTS = 16
DEFAULT_BLOCK = 77


@dataclass(frozen=True)
class Settings:
    """Everything that tells one lab from another on the same machine."""

    block: int
    directory: Path
    cache: Path
    memory_mib: int
    processors: int
    boot_timeout: float
    counted: bool
    series: str

    @staticmethod
    def from_environment():
        """The settings after the RAILGAUGE_LAB_* variables; README.md lists them."""
        block = whole_number("RAILGAUGE_LAB_BLOCK", DEFAULT_BLOCK, 1, 254)
        suffix = "" if block == DEFAULT_BLOCK else f"-{block}"
        directory = Path(os.environ.get("RAILGAUGE_LAB_DIR") or f"/var/tmp/railgauge-lab{suffix}")
        cache = Path(os.environ.get("RAILGAUGE_LAB_CACHE") or "/var/tmp/railgauge-lab-cache")
        series = os.environ.get("RAILGAUGE_LAB_KERNEL") or ""
        if series and not re.fullmatch(r"[0-9]+\.[0-9]+", series):
            raise Usage(f"RAILGAUGE_LAB_KERNEL={series}: a series of kernels such as 6.1 is needed")
        return Settings(
            block=block,
            directory=directory.absolute(),
            cache=(cache / series if series else cache).absolute(),
            memory_mib=whole_number("RAILGAUGE_LAB_MEMORY_MIB", 512, 256, 65536),
            processors=whole_number("RAILGAUGE_LAB_CPUS", 1, 1, 16),
            boot_timeout=float(whole_number("RAILGAUGE_LAB_BOOT_SECONDS", 180, 5, 3600)),
            counted=bool(whole_number("RAILGAUGE_LAB_COUNTED", 0, 0, 1)),
            series=series,
        )

    @property
    def namespace(self):
        """Network namespace that holds the fabric."""
        return f"railgauge-lab{self.block}"

    @property
    def ssh_config(self):
        return self.directory / "ssh_config"

    def ssh_address(self, host):
        """Loopback address on which host's sshd is reached."""
        return f"127.{self.block}.0.{host}"

    def fabric_address(self, nic, host):
        """Fabric address of NIC number `nic` (the rail, counted from 0) of a host; 254 is the bridge."""
        return f"10.{self.block}.{nic}.{host}"

    @property
    def port_prefix(self):
        """How the names of this lab's switch ports begin."""
        return f"rg{self.block}-"

    def port(self, nic, host):
        """Interface name of a switch port (a tap): at most 15 characters for the kernel."""
        return f"{self.port_prefix}{host}-{nic}"

    def host_directory(self, host):
        return self.directory / "hosts" / str(host)


def whole_number(name, default, least, most):
    """An environment variable as a number in a range."""
    text = os.environ.get(name)
    if not text:
        return default
    if not text.isdigit() or not least <= int(text) <= most:
        raise Usage(f"{name}={text}: a whole number from {least} to {most} is needed")
    return int(text)


def private_directory(path):
    """Make a directory only this user can enter; refuse one that somebody else prepared."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.lstat(path)
    if path.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise LabError(f"{path} belongs to somebody else or others can write it; remove it or choose another place")
    return path
