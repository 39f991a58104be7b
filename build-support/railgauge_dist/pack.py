"""Packs a release: a folder that runs where it is, the same as a tarball, and a Debian package."""
import gzip
import hashlib
import os
import shutil
import tarfile
from pathlib import Path

from .shell import ROOT, run, say

# Where completions go in the tarball and in the package: the writer's file, then the two places.
COMPLETIONS = (
    ("bash/railgauge", "share/bash-completion/completions/railgauge", "usr/share/bash-completion/completions/railgauge"),
    ("zsh/_railgauge", "share/zsh/site-functions/_railgauge", "usr/share/zsh/vendor-completions/_railgauge"),
    ("fish/railgauge.fish", "share/fish/vendor_completions.d/railgauge.fish",
     "usr/share/fish/vendor_completions.d/railgauge.fish"),
)
CONTROL = """\
Package: railgauge
Version: {version}
Architecture: amd64
Section: net
Priority: optional
Maintainer: The railgauge developers
Installed-Size: {size}
Depends: libc6 (>= {glibc})
Recommends: openssh-client
Description: tests the network of a GPU cluster from a plan file
 Sends small agents to the hosts of a cluster over SSH, runs RDMA, TCP and NCCL tests
 between them, verifies the data, and writes one report of what is slow, wrong or
 not configured as it should be. The agents for x86_64 and aarch64 are in this package.
"""


def put(source, target, mode=0o644):
    """Copy a file to where it belongs."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def sums(folder, files):
    """Lines of sha256sum for files of a folder."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder)}\n" for file in files)


def tracked(*below):
    """Files of the repository, so that nothing that only lies about gets into a release."""
    return [Path(name) for name in run("git", "ls-files", "-z", *below).split("\0") if name]


class Release:
    """One release: its programs, texts and places."""

    def __init__(self, out, version, suffix, epoch):
        self.out, self.version, self.epoch = out, version, epoch
        self.name = f"railgauge-{version}-linux-x86_64{suffix}"
        self.folder = out / self.name
        self.tarball = out / f"{self.name}.tar.gz"
        self.package = out / f"railgauge_{version}_amd64{suffix}.deb"
        # Packing a debug build well takes longer than building it.
        self.level = 1 if suffix else 9
        # The agents in it.
        self.agents = []

    def fill(self, controller, agents, needed, notes, licences):
        """Lay the folder out."""
        shutil.rmtree(self.folder, ignore_errors=True)
        put(controller, self.folder / "bin/railgauge", 0o755)
        self.agents = [agent for agent, _ in agents]
        for agent, file in agents:
            put(file, self.folder / "bin" / agent.name, 0o755)
        files = self.out / "shell-files"
        run(self.folder / "bin/railgauge", "shell-files", files)
        for source, place, _ in COMPLETIONS:
            put(files / source, self.folder / place)
        for page in (files / "man1").iterdir():
            put(page, self.folder / "share/man/man1" / page.name)
        shutil.rmtree(files)
        for name in tracked("docs", "plans", "deploy", "LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "SECURITY.md"):
            put(ROOT / name, self.folder / name)
        text = Path(__file__).with_name("README-release.md").read_text("utf-8")
        text = text.replace("@VERSION@", self.version).replace("@CONTROLLER_GLIBC@", needed)
        (self.folder / "README.md").write_text(text, "utf-8")
        (self.folder / "BUILD.txt").write_text(notes, "utf-8")
        (self.folder / "THIRD-PARTY.txt").write_text(licences, "utf-8")
        every = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
        (self.folder / "SHA256SUMS").write_text(sums(self.folder, every), "utf-8")

    def same_owner(self, entry):
        """The same bytes on every machine: root's files, of the time of the commit."""
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = self.epoch
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    def pack_tarball(self):
        """The folder as a tarball. gzip, since small images of Debian have no xz."""
        say(f"packing {self.tarball.name}")
        with open(self.tarball, "wb") as raw, gzip.GzipFile("", "wb", self.level, raw, mtime=self.epoch) as packed, \
                tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            # Sorted by tarfile itself.
            tar.add(self.folder, self.name, filter=self.same_owner)

    def pack_package(self, needed):
        """The folder as a Debian package. Agents are no programs for people, so they are not in /usr/bin."""
        say(f"packing {self.package.name}")
        root = self.out / "package"
        shutil.rmtree(root, ignore_errors=True)
        put(self.folder / "bin/railgauge", root / "usr/bin/railgauge", 0o755)
        for agent in self.agents:
            put(self.folder / "bin" / agent.name, root / "usr/lib/railgauge" / agent.name, 0o755)
        for _, source, place in COMPLETIONS:
            put(self.folder / source, root / place)
        for page in (self.folder / "share/man/man1").iterdir():
            place = root / "usr/share/man/man1" / f"{page.name}.gz"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        about = root / "usr/share/doc/railgauge"
        for name in tracked("docs", "plans", "deploy"):
            put(self.folder / name, about / name)
        for name in ("BUILD.txt", "THIRD-PARTY.txt", "LICENSE-APACHE", "LICENSE-MIT", "SECURITY.md"):
            put(self.folder / name, about / name)
        (about / "changelog.gz").write_bytes(gzip.compress((self.folder / "CHANGELOG.md").read_bytes(), mtime=0))
        (about / "copyright").write_text(
            "railgauge is licensed under MIT (LICENSE-MIT) or Apache-2.0 (LICENSE-APACHE), at your choice.\n"
            "Software of others in it, and its licences: THIRD-PARTY.txt.\n", "utf-8")
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        control = root / "DEBIAN/control"
        control.parent.mkdir()
        control.write_text(CONTROL.format(version=self.version, size=size, glibc=needed), "utf-8")
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (self.epoch, self.epoch))
        run("dpkg-deb", "--root-owner-group", "-Zgzip", f"-z{self.level}", "--build", root, self.package,
            env={"SOURCE_DATE_EPOCH": str(self.epoch)})
        shutil.rmtree(root)

    def pack(self, needed):
        """Both, and their sums."""
        self.pack_tarball()
        self.pack_package(needed)
        (self.out / "SHA256SUMS").write_text(sums(self.out, [self.tarball, self.package]), "utf-8")
