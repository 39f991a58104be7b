"""Finding and fetching the guests' kernel as a Debian package; it is unpacked, never installed.

Linux 6.12 is wanted: with its Soft-RoCE the fabric retransmits next to nothing, where 6.1 does so by the hundred.
Debian 13 has it, Debian 12 has it in its security or backports suite. The machine's own apt configuration is asked
first; if it does not know the suite, apt runs with a private configuration, so that the machine's stays as it is.
"""
import os
import re
import shutil
from pathlib import Path

from .errors import LabError
from .process import run

WANTED, FALLBACK = "6.12", "6.1"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def kernel_package(work, series, say):
    """Fetch a kernel package of a series into `work`, without a series the best for the lab. Returns its path and the
    kinds of apt that may know what else belongs to it."""
    given = os.environ.get("RAILGAUGE_LAB_KERNEL_DEB")
    if given:
        return Path(given), [machine_apt, private_apt]
    failures = []
    usual = ((WANTED, machine_apt), (WANTED, private_apt), (FALLBACK, machine_apt))
    for series, source in ((series, machine_apt), (series, private_apt)) if series else usual:
        try:
            apt = source(work)
            name = newest(apt.kernels(series))
            if name is None:
                raise LabError("no such package")
            note = "" if series != FALLBACK else ", whose Soft-RoCE retransmits far more than that of 6.12"
            say(f"fetching {name}{note}")
            return apt.download(name), [source]
        except LabError as error:
            failures.append(f"Linux {series} {apt_name(source)}: {error}")
            say(failures[-1])
    raise LabError("no kernel for the guests; run `apt-get update` (./setup --tests does), or name a kernel package "
                   "in RAILGAUGE_LAB_KERNEL_DEB")


def apt_name(source):
    return "by this machine's apt" if source is machine_apt else "by a private apt with Debian's backports"


def newest(names):
    """The highest version of some kernel package names; of two with one version the signed one."""
    def key(name):
        return [int(part) for part in re.findall(r"\d+", name)], not name.endswith("-unsigned")
    return max(names, key=key, default=None)


class Apt:
    """apt with some options, either none or those of a private configuration."""

    def __init__(self, options, work):
        self.options = options
        self.work = work

    def kernels(self, series):
        """Names of the plain amd64 kernels of a series: not cloud (it has no Soft-RoCE), not real-time."""
        start = rf"^linux-image-{re.escape(series)}\."
        found = run("apt-cache", *self.options, "search", "--names-only", start, ok=(0, 100))
        pattern = re.compile(rf"linux-image-{re.escape(series)}\.[0-9.+~a-z-]*-amd64(-unsigned)?")
        names = (line.split(" ", 1)[0] for line in found.decode().splitlines())
        return [name for name in names if pattern.fullmatch(name) and not re.search(r"-(cloud|rt)-", name)]

    def download(self, name):
        """Fetch a package, `NAME` or `NAME=VERSION`, and return its path."""
        folder = self.work / "packages" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        here = os.getcwd()
        try:
            os.chdir(folder)
            run("apt-get", *self.options, "-o", "APT::Sandbox::User=root", "download", name)
        finally:
            os.chdir(here)
        files = list(folder.glob("*.deb"))
        if len(files) != 1:
            raise LabError(f"apt-get download {name} left {len(files)} packages in {folder}, one was expected")
        return files[0]


def machine_apt(work):
    """apt as this machine has it configured."""
    return Apt([], work)


def private_apt(work):
    """An apt whose sources, lists and cache lie in the lab's own folder, with Debian's backports added."""
    root = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    suite = f"{debian_codename()}-backports"
    signed = f"Signed-By: {KEYRING}\n" if Path(KEYRING).exists() else ""
    sources = root / "etc/lab.sources"
    sources.write_text(f"Types: deb\nURIs: {mirror()}\nSuites: {suite}\nComponents: main\n{signed}")
    settings = {"Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": root / "none",
                "Dir::State::Lists": root / "lists", "Dir::Cache": root / "cache", "APT::Sandbox::User": "root"}
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run("apt-get", *options, "update", "-q")
    return Apt(options, work)


def mirror():
    """Debian mirror this machine uses, or the one named in RAILGAUGE_DEBIAN_MIRROR."""
    given = os.environ.get("RAILGAUGE_DEBIAN_MIRROR")
    if given:
        return given
    targets = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages", ok=(0, 100))
    for line in targets.decode().splitlines():
        origin, _, uri = line.partition(" ")
        if origin == "Debian" and uri.rstrip("/").endswith("/debian"):
            return uri
    raise LabError("this machine's apt knows no Debian mirror; name one in RAILGAUGE_DEBIAN_MIRROR, or a kernel "
                   "package in RAILGAUGE_LAB_KERNEL_DEB")


def debian_codename():
    """This Debian's name; on another distribution the Debian release that has 6.12 in its backports."""
    facts = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return facts.get("VERSION_CODENAME", "bookworm") if facts.get("ID") == "debian" else "bookworm"
