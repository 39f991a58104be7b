"""The programs of a release: agents for old C libraries, and the controller."""
import filecmp
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .fetch import ARM, Zig, rust_for_arm, rustc_wrapper
from .shell import ROOT, Problem, Unavailable, cargo, run, say, skipped, write

X86 = "x86_64-unknown-linux-gnu"
TARGET = ROOT / "target/dist"
# Agents are compiled by rustc itself, whatever looks at the code of the tests beside.
UNWRAPPED = {"RUSTC_WORKSPACE_WRAPPER": ""}


@dataclass(frozen=True)
class Agent:
    """An agent for one architecture."""
    name: str
    target: str
    # The oldest glibc it starts with.
    glibc: str


AGENTS = (Agent("railgauge-agent", X86, "2.17"), Agent("railgauge-agent-aarch64", ARM, "2.28"))
CONTROLLER_GLIBC = "2.17"


def newest_glibc(file):
    """The newest version of glibc whose symbols a program asks for, as a pair of numbers, and those symbols."""
    text = run("readelf", "--wide", "--dyn-syms", file, env={"LC_ALL": "C"})
    found = [(tuple(map(int, version.split("."))), symbol)
             for symbol, version in re.findall(r"UND (\S+)@GLIBC_([0-9.]+)", text)]
    if not found:
        raise Problem(f"{file} asks for no symbol of glibc: it is no program for it")
    newest = max(version for version, _ in found)
    return newest, sorted({symbol for version, symbol in found if version == newest})


def check_glibc(file, limit):
    """Refuse a program that does not start with a version of glibc. Return the version it needs, as text."""
    newest, symbols = newest_glibc(file)
    needed = ".".join(map(str, newest))
    if newest > tuple(map(int, limit.split("."))):
        raise Problem(f"{file} needs glibc {needed}, at most {limit} is allowed: {', '.join(symbols)}")
    return needed


def copy_changed(source, target):
    """Copy a file with its time, but not over one that is the same: another ./dist may be compiling with it."""
    if not Path(target).exists() or not filecmp.cmp(source, target, shallow=False):
        shutil.copy2(source, target)


def headers(into, zig):
    """The headers of libibverbs and librdmacm, and the words for pkg-config and clang that name them and nothing to link: the
    agent opens the libraries when it needs them. Headers of the C library are zig's, since sizes of its types differ between
    architectures (pthread_mutex_t); those of the machine come last."""
    include = Path(run("pkg-config", "--variable=includedir", "libibverbs").strip())
    for folder in ("infiniband", "rdma"):
        shutil.copytree(include / folder, into / "include" / folder, copy_function=copy_changed, dirs_exist_ok=True)
    for name in ("libibverbs", "librdmacm"):
        version = run("pkg-config", "--modversion", name).strip()
        write(into / f"{name}.pc", f"Name: {name}\nDescription: headers\nVersion: {version}\nCflags: -I{into}/include\n")
    folders = [zig.headers / part for part in ("aarch64-linux-gnu", "generic-glibc", "aarch64-linux-any", "any-linux-any")]
    clang = " ".join(f"-isystem {folder}" for folder in [*folders, include])
    return {"PKG_CONFIG_LIBDIR": str(into), "PKG_CONFIG_PATH": "", "PKG_CONFIG_ALLOW_CROSS": "1",
            f"BINDGEN_EXTRA_CLANG_ARGS_{ARM.replace('-', '_')}": clang}


# Structures of the libraries with types of the C library in them, which differ between architectures.
TYPES = ("ibv_context", "ibv_cq", "ibv_qp", "ibv_srq", "ibv_wq", "rdma_cm_id", "rdma_event_channel")


def check_types(bindings, target, glibc, zig, env):
    """Refuse sizes of C structures in generated Rust code that a C compiler for the same target does not have. (rustc itself
    checks that its own are those in the code.)"""
    text = bindings.read_text("utf-8")
    code = ["#include <infiniband/verbs.h>", "#include <rdma/rdma_cma.h>"]
    for name in TYPES:
        size = re.search(rf"size_of::<{name}>\(\) - (\d+)usize", text)
        if size is None:
            raise Problem(f"{bindings} does not say how large {name} is")
        code.append(f'_Static_assert(sizeof(struct {name}) == {size[1]}, "{name}");')
    architecture = target.split("-", maxsplit=1)[0]
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        file = Path(folder) / "types.c"
        file.write_text("\n".join(code) + "\n", "utf-8")
        run(zig.zig, "cc", "-target", f"{architecture}-linux-gnu.{glibc}", f"-I{TARGET}/include", "-c", file, "-o",
            file.with_suffix(".o"), env=env)


class Builder:
    """Builds with zig as the linker."""

    def __init__(self, commit):
        self.zig = Zig()
        TARGET.mkdir(parents=True, exist_ok=True)
        self.common = {**self.zig.env(), **UNWRAPPED, "CARGO_INCREMENTAL": "0", "RAILGAUGE_COMMIT": commit}
        self.headers = headers(TARGET, self.zig)
        # What the programs were built with, for BUILD.txt.
        self.notes = []

    def build(self, words, target, glibc, env, folder):
        """Run `cargo zigbuild`; return the folder of its programs."""
        run(cargo(), "zigbuild", "--locked", *words, "--target", f"{target}.{glibc}",
            env={**self.common, **env, "CARGO_TARGET_DIR": str(folder)})
        profile = "agent" if "agent" in words else "release"
        return folder / target / profile

    def agent(self, agent):
        """Build one agent; return its file."""
        env, folder = dict(self.headers), TARGET
        rust = run("rustc", "--version").strip()
        if agent.target == ARM:
            debian = rust_for_arm()
            if debian is not None:
                compiler = rustc_wrapper(debian, TARGET)
                env |= {"RUSTC": str(compiler)}
                rust = run(compiler, "--version").strip()
                listed = (debian / "packages.txt").read_text("utf-8").rstrip()
                self.notes.append(f"Debian's packages of the compiler for {ARM}:\n{listed}")
            # Another compiler would throw away what the first one built.
            folder = TARGET / "aarch64"
        say(f"building {agent.name} for glibc {agent.glibc} with {rust}")
        words = ("--profile", "agent", "-p", "railgauge-agent")
        built = self.build(words, agent.target, agent.glibc, env, folder)
        bindings = max(built.glob("build/rdma-sys-*/out/bindings.rs"), key=lambda file: file.stat().st_mtime)
        check_types(bindings, agent.target, agent.glibc, self.zig, self.zig.env())
        file = built / "railgauge-agent"
        self.notes.insert(0, f"{agent.name}: {agent.target}, needs glibc {check_glibc(file, agent.glibc)}, {rust}")
        return file

    def agents(self, is_quick):
        """Build the agents; return them with their files. To try the rest of a release (`is_quick`) those are left out for which
        something cannot be fetched."""
        built = []
        for agent in AGENTS:
            try:
                built.append((agent, self.agent(agent)))
            except Unavailable as problem:
                if not is_quick or agent.target == X86:
                    raise
                skipped(f"{agent.name} was not built: {problem}")
        return built

    def controller(self):
        """Build the controller in its release form; return its file."""
        say(f"building railgauge for glibc {CONTROLLER_GLIBC}; its release form takes some minutes")
        # A panic ends it (Cargo.toml): tables to unwind its stack are of no use, and have 6 MB.
        tables = {"RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} -C force-unwind-tables=no".strip()}
        file = self.build(("--release", "-p", "railgauge"), X86, CONTROLLER_GLIBC, tables, TARGET) / "railgauge"
        self.notes.insert(0, f"railgauge: {X86}, needs glibc {check_glibc(file, CONTROLLER_GLIBC)}, "
                             f"{run('rustc', '--version').strip()}")
        return file


def own_agent():
    """The agent for this machine's own C library, without zig: to try the rest of a release where zig cannot be had."""
    say("building railgauge-agent for this machine alone")
    run(cargo(), "build", "--locked", "--profile", "agent", "-p", "railgauge-agent", "--bin", "railgauge-agent", env=UNWRAPPED)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    file = target / "agent/railgauge-agent"
    newest, _ = newest_glibc(file)
    return Agent("railgauge-agent", X86, ".".join(map(str, newest))), file


def debug_controller(into):
    """The controller as a plain build leaves it, stripped: quick to make, slow to run, for trying the rest of a release."""
    say("building railgauge without optimisation")
    run(cargo(), "build", "--locked", "-p", "railgauge", "--bin", "railgauge")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    file = into / "railgauge"
    run("strip", "-o", file, target / "debug/railgauge")
    return file
