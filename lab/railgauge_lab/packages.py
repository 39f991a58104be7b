"""Finding and fetching Debian's packages: the guests' kernel and, for Arm guests, their programs. They are unpacked, never
installed.

Linux 6.12 is wanted: with its Soft-RoCE the fabric retransmits next to nothing, where 6.1 does so by the hundred.
Debian 13 has it, Debian 12 has it in its security or backports suite. The machine's own apt configuration is asked
first; if it does not know the suite, apt runs with a private configuration, so that the machine's stays as it is.
"""
import os
import re
import shutil
from pathlib import Path

from .architecture import ARM, X86
from .errors import LabError
from .process import run

WANTED, FALLBACK = "6.12", "6.1"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def kernel_package(work, architecture, series, say):
    """Fetch a kernel package of a series into `work`, without a series the best for the lab. Returns its path and the
    kinds of apt that may know what else belongs to it."""
    given = os.environ.get("RAILGAUGE_LAB_KERNEL_DEB")
    if given and architecture is X86:
        return Path(given), [machine_apt, private_apt]
    failures = []
    for series, source in kernel_sources(architecture, series):
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


def kernel_sources(architecture, series):
    """Which series to look for where, the best first."""
    if architecture is ARM:
        return [(wanted, arm_apt) for wanted in ([series] if series else [WANTED, FALLBACK])]
    if series:
        return [(series, machine_apt), (series, private_apt)]
    return [(WANTED, machine_apt), (WANTED, private_apt), (FALLBACK, machine_apt)]


def apt_name(source):
    names = {machine_apt: "by this machine's apt", private_apt: "by a private apt with Debian's backports"}
    return names.get(source, "by a private apt for arm64")


def newest(names):
    """The highest version of some kernel package names; of two with one version the signed one."""
    def key(name):
        return [int(part) for part in re.findall(r"\d+", name)], not name.endswith("-unsigned")
    return max(names, key=key, default=None)


class Apt:
    """apt with some options, either none or those of a private configuration."""

    def __init__(self, options, work, architecture=X86.debian):
        self.options = options
        self.work = work
        self.architecture = architecture

    def kernels(self, series):
        """Names of the plain kernels of a series: not cloud (it has no Soft-RoCE), not real-time, usual pages."""
        start = rf"^linux-image-{re.escape(series)}\."
        found = run("apt-cache", *self.options, "search", "--names-only", start, ok=(0, 100))
        pattern = re.compile(rf"linux-image-{re.escape(series)}\.[0-9.+~a-z-]*-{self.architecture}(-unsigned)?")
        names = (line.split(" ", 1)[0] for line in found.decode().splitlines())
        return [name for name in names if pattern.fullmatch(name) and not re.search(r"-(cloud|rt)-", name)]

    def to_install(self, names, wanted):
        """Of these packages and all they depend on, those whose names are `wanted`."""
        said = run("apt-get", *self.options, "--simulate", "install", "--no-install-recommends", *names)
        return filter(wanted, re.findall(r"^Inst (\S+)", said.decode(), re.M))

    def download(self, name):
        """Fetch a package, `NAME` or `NAME=VERSION`, and return its path."""
        (file,) = self.download_all([name])
        return file

    def download_all(self, names):
        """Fetch packages, each in its own folder if it is alone, and return their paths."""
        folder = self.work / "packages" / names[0]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        here = os.getcwd()
        try:
            os.chdir(folder)
            run("apt-get", *self.options, "-o", "APT::Sandbox::User=root", "download", *names)
        finally:
            os.chdir(here)
        files = sorted(folder.glob("*.deb"))
        if len(files) != len(names):
            raise LabError(f"apt-get download {' '.join(names)} left {len(files)} packages in {folder}, {len(names)} were "
                           "expected")
        return files


def machine_apt(work):
    """apt as this machine has it configured."""
    return Apt([], work)


def private_apt(work):
    """An apt whose sources, lists and cache lie in the lab's own folder, with Debian's backports added."""
    return Apt(private_options(work / "apt", [f"{debian_codename()}-backports"]), work)


def arm_apt(work):
    """An apt of the same kind for arm64, with all of Debian's release, whatever this machine is."""
    lists = [debian_codename(), f"{debian_codename()}-backports"]
    options = private_options(work / "apt-arm64", lists, {
        "APT::Architecture": ARM.debian, "APT::Architectures": ARM.debian,
        # What is installed here is of no use there.
        "Dir::State::Status": os.devnull})
    return Apt(options, work, ARM.debian)


def private_options(root, suites, more=None):
    """Options of an apt with its own sources, after it has read their lists."""
    for folder in ("lists/partial", "cache/archives/partial", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    signed = f"Signed-By: {KEYRING}\n" if Path(KEYRING).exists() else ""
    sources = root / "etc/lab.sources"
    sources.write_text(f"Types: deb\nURIs: {mirror()}\nSuites: {' '.join(suites)}\nComponents: main\n{signed}")
    settings = {"Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": root / "none",
                "Dir::State::Lists": root / "lists", "Dir::Cache": root / "cache", "APT::Sandbox::User": "root",
                **(more or {})}
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run("apt-get", *options, "update", "-q")
    return options


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
    raise LabError("this machine's apt knows no Debian mirror; name one in RAILGAUGE_DEBIAN_MIRROR, or, where all hosts are "
                   "x86, a kernel package in RAILGAUGE_LAB_KERNEL_DEB")


def debian_codename():
    """This Debian's name; on another distribution the Debian release that has 6.12 in its backports."""
    facts = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return facts.get("VERSION_CODENAME", "bookworm") if facts.get("ID") == "debian" else "bookworm"
