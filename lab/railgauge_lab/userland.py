"""Where the programs and libraries of a guest's image come from: this machine itself, or Debian's packages for another
architecture, fetched and unpacked."""
import glob
import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import LabError
from .process import run

# Debian's packages with the programs and libraries that the image names.
PACKAGES = ["bash", "busybox-static", "coreutils", "ibverbs-providers", "ibverbs-utils", "iperf3", "iproute2", "libgcc-s1",
            "librdmacm1", "openssh-client", "openssh-server", "openssh-sftp-server", "perftest", "procps", "util-linux"]
# Of what they depend on, the libraries; the rest is there to configure an installed system.
LIBRARY = re.compile(r"z?lib(?!.*perl)")
# On today's distributions these are links into /usr. Packages may name their files either way.
MERGED = ["bin", "sbin", "lib", "lib64"]


class Own:
    """This machine's programs and libraries."""

    root = Path("/")

    def __init__(self, architecture):
        self.architecture = architecture

    def file(self, name):
        """Where a file of the guest, named as it is there, lies here."""
        return self.root / name.lstrip("/")

    def has(self, name):
        """Whether there is such a file."""
        return self.file(name).exists()

    def glob(self, pattern):
        """Names of the files that fit, as the guest has them."""
        return [f"/{os.path.relpath(hit, self.root)}" for hit in sorted(glob.glob(str(self.file(pattern))))]

    def library(self, pattern):
        """The first library that fits, in a list, which is empty where there is none."""
        folders = [f"{above}/{self.architecture.triplet}" for above in ("/usr/lib", "/lib")]
        return [hit for folder in folders for hit in self.glob(f"{folder}/{pattern}")][:1]

    def is_elf(self, name):
        """Whether a file is a program or a library."""
        with open(self.file(name), "rb") as file:
            return file.read(4) == b"\x7fELF"

    def with_libraries(self, names):
        """The files and every shared library that the loader would map for them, each once."""
        found = dict.fromkeys(names)
        done = subprocess.run(["ldd", *filter(self.is_elf, names)], capture_output=True, check=False)
        for line in done.stdout.decode().splitlines():
            if "not found" in line:
                raise LabError(f"a program of the image lacks a library: {line.strip()}")
            # "<name> => /path (0x...)" or "\t/lib64/ld-linux-x86-64.so.2 (0x...)"; headings end with a colon.
            match = re.search(r"(?:=> |^\s+)(/\S+) \(0x", line)
            if match:
                found.setdefault(match[1])
        return list(found)


class Unpacked(Own):
    """Packages for another architecture, unpacked in a folder. Nothing of it is run: files say themselves what they need."""

    def __init__(self, architecture, root):
        super().__init__(architecture)
        self.root = root

    def with_libraries(self, names):
        found, at = list(dict.fromkeys(names)), 0
        while at < len(found):
            for needed in self.needs(found[at]) if self.is_elf(found[at]) else []:
                if needed not in found:
                    found.append(needed)
            at += 1
        return found

    def needs(self, name):
        """The loader and the libraries that a file names."""
        said = run("readelf", "--wide", "--dynamic", "--program-headers", self.file(name)).decode()
        loaders = re.findall(r"program interpreter: (\S+)\]", said)
        libraries = []
        for wanted in re.findall(r"\(NEEDED\)\s.*\[(\S+)\]", said):
            hits = self.library(wanted)
            if not hits:
                raise LabError(f"{name} of the image lacks a library: {wanted}, which no unpacked package has")
            libraries += hits
        return [*loaders, *libraries]


def unpack(apt, target, work, say):
    """Fetch the packages and the libraries they depend on, and fill `target` with their files."""
    wanted = list(apt.to_install(PACKAGES, lambda name: name in PACKAGES or LIBRARY.match(name)))
    say(f"fetching {len(wanted)} packages for {apt.architecture}")
    scratch = work / "root"
    shutil.rmtree(scratch, ignore_errors=True)
    for name in MERGED:
        (scratch / "usr" / name).mkdir(parents=True)
        (scratch / name).symlink_to(f"usr/{name}")
    for package in apt.download_all(wanted):
        archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
        with archive:
            done = subprocess.run(["tar", "-xf", "-", "--keep-directory-symlink", "-C", str(scratch)], stdin=archive.stdout,
                                  capture_output=True, check=False)
        if archive.returncode or done.returncode:
            raise LabError(f"{package.name} cannot be unpacked: {done.stderr.decode(errors='replace').strip()}")
    (scratch / "wanted").write_text(stamp())
    shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)


def current(target):
    """Whether a folder was filled with the packages wanted today."""
    note = target / "wanted"
    return note.exists() and note.read_text() == stamp()


def stamp():
    """What was wanted."""
    return f"{' '.join(PACKAGES)}\n"
