"""What is fetched for a release: zig and cargo-zigbuild from the Python registry, pinned by version and sum; for aarch64
Debian's Rust compiler, unless the machine's own has that target, and Debian's C library to try the agent with.

apt checks Debian's packages with Debian's keys. Their versions are not pinned: Debian takes an old one away when it mends
something, so a pinned build would end there. Names and sums are noted instead. All is unpacked into the cache, nothing is
installed."""
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from .shell import Problem, Unavailable, cache, fetched, run, say, write

ARM = "aarch64-unknown-linux-gnu"
TOOLS = Path(__file__).with_name("tools.txt")
# The first Rust that builds railgauge (rust-version in Cargo.toml).
OLDEST_RUST = (1, 95)


def once(name, fill):
    """A folder of the cache, filled by `fill` if it is not there. It gets its name only when it is complete."""
    folder = cache() / name
    if not folder.exists():
        part = cache() / f"{name}.part-{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            fill(part)
            if not folder.exists():
                part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


class Zig:
    """zig and cargo-zigbuild."""

    def __init__(self):
        # Another list of tools is another folder.
        sum_of_list = hashlib.sha256(TOOLS.read_bytes()).hexdigest()[:12]
        self.folder = once(f"tools-{sum_of_list}", self.fetch).resolve()
        self.zig = self.folder / "ziglang/zig"
        self.headers = self.folder / "ziglang/lib/libc/include"

    @staticmethod
    def fetch(folder):
        """Have pip fetch, check and unpack the pinned files."""
        say("fetching zig and cargo-zigbuild")
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
        fetched(*pip, "install", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile", "--root-user-action",
            "ignore", "--target", folder, "-r", TOOLS)

    def env(self):
        """Environment for `cargo zigbuild`."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CARGO_ZIGBUILD_ZIG_PATH": str(self.zig),
                "ZIG_GLOBAL_CACHE_DIR": str(cache() / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache() / "zig")}


class Apt:
    """Debian's packages of one architecture, with lists of our own for a foreign one."""

    def __init__(self, architecture):
        self.architecture = architecture
        self.options = []
        if architecture != "amd64":
            private = cache() / f"apt-{architecture}"
            for folder in ("lists/partial", "cache/archives/partial"):
                (private / folder).mkdir(parents=True, exist_ok=True)
            settings = {"APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Sandbox::User": "root",
                        "Dir::State::Lists": private / "lists", "Dir::State::Status": "/dev/null",
                        "Dir::Cache": private / "cache"}
            self.options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
            fetched("apt-get", "-qq", *self.options, "update")

    def candidate(self, name):
        """The version that would be installed; None where there is no such package."""
        found = re.search(r"Candidate: (\S+)", run("apt-cache", *self.options, "policy", name))
        return None if found is None or found[1] == "(none)" else found[1]

    def depends(self, name):
        """The packages that one needs directly."""
        text = run("apt-cache", *self.options, "depends", name)
        return re.findall(r"^  Depends: ([a-z0-9.+-]+)$", text, re.M)

    def unpack(self, name, version, into):
        """Fetch a package, which apt checks, and unpack it. Note its name and sum."""
        work = into / "package"
        work.mkdir()
        if version is None:
            raise Unavailable(f"apt knows no package {name} for {self.architecture}")
        fetched("apt-get", "-qq", *self.options, "-o", "APT::Sandbox::User=root", "download", f"{name}={version}", cwd=work)
        (file,) = work.glob("*.deb")
        run("dpkg-deb", "-x", file, into)
        with open(into / "packages.txt", "a", encoding="utf-8") as note:
            note.write(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name.replace('%3a', ':')}\n")
        shutil.rmtree(work)


def rust_for_arm():
    """The compiler for aarch64: None for the machine's own, else the folder of Debian's."""
    own = Path(run("rustc", "--print", "target-libdir", "--target", ARM).strip())
    if any(own.glob("libstd-*.rlib")):
        return None
    kept = sorted(cache().glob("rust-*/usr/bin/rustc"))
    return kept[-1].parent.parent.parent if kept else once(*debian_rust())


def debian_rust():
    """Name and filling of the folder of Debian's Rust: the newest of its two lines of packages."""
    advice = f"no Rust for {ARM} here: rustup gets it (`rustup target add {ARM}`)"
    if shutil.which("apt-cache") is None:
        raise Unavailable(advice)
    here = Apt("amd64")
    found = []
    for line in ("", "-web"):
        version = here.candidate(f"rustc{line}")
        number = re.match(r"(\d+)\.(\d+)", version or "")
        if number and tuple(map(int, number.groups())) >= OLDEST_RUST:
            found.append((tuple(map(int, number.groups())), version, line))
    if not found:
        raise Unavailable(f"{advice}; Debian's, which apt could fetch, is older than {OLDEST_RUST[0]}.{OLDEST_RUST[1]}. If `apt-get "
                      "update` was not run lately, that may help")
    _, version, line = max(found)

    def fill(folder):
        say(f"fetching Debian's Rust {version} for {ARM}")
        arm = Apt("arm64")
        std = f"libstd-rust{line}-dev"
        for name in (f"rustc{line}", std):
            here.unpack(name, version, folder)
        for library in here.depends(std):
            here.unpack(library, version, folder)
            for needed in here.depends(library):
                if needed.startswith("libllvm"):
                    here.unpack(needed, here.candidate(needed), folder)
        arm.unpack(std, version, folder)

    return f"rust-{version}", fill


def rustc_wrapper(folder, into):
    """A program that runs the unpacked compiler with its own libraries."""
    libraries = folder / "usr/lib/x86_64-linux-gnu"
    file = into / "rustc-for-aarch64"
    write(file, f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {folder}/usr/bin/rustc "$@"\n')
    file.chmod(0o755)
    return file


def arm_libraries():
    """Folder with Debian's C library for arm64, to start the agent with under qemu; None where it cannot be had."""
    def fill(folder):
        arm = Apt("arm64")
        for name in ("libc6", "libgcc-s1"):
            arm.unpack(name, arm.candidate(name), folder)
    try:
        return once("arm64-libc", fill)
    except Unavailable as problem:
        say(f"no C library for arm64 could be fetched: {problem}")
        return None
