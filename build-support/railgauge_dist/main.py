"""The command line of ./dist."""
import argparse
import re
import sys
from pathlib import Path

from . import check, pack
from .build import AGENTS, X86, Builder, check_glibc, debug_controller, newest_glibc, own_agent
from .licences import third_party
from .pack import put
from .shell import ROOT, Problem, Unavailable, run, say, skipped


def commit():
    """The commit that is built, marked where the tree differs from it, and its time in seconds since 1970."""
    name = run("git", "rev-parse", "--short=12", "HEAD").strip()
    if run("git", "status", "--porcelain", "--untracked-files=no").strip():
        name += "-dirty"
    return name, int(run("git", "log", "-1", "--format=%ct"))


def stated(file, pattern):
    """What a file of the source states."""
    found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.M)
    if found is None:
        raise Problem(f"{file} does not state {pattern}")
    return found[1]


def make(arguments):
    """Build, pack, check."""
    out = arguments.output.resolve()
    out.mkdir(parents=True, exist_ok=True)
    name, epoch = commit()
    notes = []
    try:
        builder = Builder(name)
        notes = builder.notes
        agents = builder.agents(arguments.quick)
    except Unavailable as problem:
        if not arguments.quick:
            raise
        skipped(f"no agents for old C libraries and for aarch64: {problem}")
        agents = [own_agent()]
    if arguments.quick:
        controller = debug_controller(out)
    else:
        controller = builder.controller()
    newest, _ = newest_glibc(controller)
    needed = ".".join(map(str, newest))
    version = stated("Cargo.toml", r'^\[workspace\.package\]\nversion = "(.+)"$')
    release = pack.Release(out, version, "-quick" if arguments.quick else "", epoch)
    release.fill(controller, agents, needed, "\n".join([f"railgauge {version}, commit {name}", *notes]) + "\n",
                 third_party({X86, *(agent.target for agent, _ in agents)}))
    if arguments.quick:
        controller.unlink()
    release.pack(needed)
    say("trying what was packed")
    check.check(release, int(stated("wire/src/lib.rs", r"^pub const PROTOCOL: u32 = (\d+);$")))
    for file in [release.tarball, release.package]:
        say(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
    say(f"done: {out}")


def make_agent(architecture, out):
    """Build the agent of one architecture alone, into `out`."""
    agent = next(agent for agent in AGENTS if agent.target.startswith(f"{architecture}-"))
    name, _ = commit()
    built = Builder(name).agent(agent)
    out.mkdir(parents=True, exist_ok=True)
    put(built, out / agent.name, 0o755)
    say(f"done: {out / agent.name}")


# Exit status where something must be fetched that cannot be had here: what automake and meson call a skipped test.
UNAVAILABLE = 77


def main(words):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="./dist", description="Makes a release: a tarball and a Debian package with the "
                                     "controller, agents for x86_64 and aarch64, completions, manual pages and plans.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "release", help="folder to write to [default: %(default)s]")
    parser.add_argument("--quick", action="store_true",
                        help="with an unoptimised controller, to try everything else; not for use on a cluster")
    parser.add_argument("--glibc", nargs=2, metavar=("FILE", "VERSION"),
                        help="only check that a program starts with this version of glibc")
    parser.add_argument("--agent", choices=[agent.target.split("-", maxsplit=1)[0] for agent in AGENTS], metavar="ARCHITECTURE",
                        help="build only the agent for x86_64 or aarch64, and put it into the folder of --output; ends with status "
                             f"{UNAVAILABLE} where something for it cannot be fetched")
    arguments = parser.parse_args(words)
    try:
        if arguments.glibc:
            print(f"needs glibc {check_glibc(*arguments.glibc)}")
        elif arguments.agent:
            make_agent(arguments.agent, arguments.output.resolve())
        else:
            make(arguments)
    except Unavailable as problem:
        print(f"dist: {problem}", file=sys.stderr)
        return UNAVAILABLE if arguments.agent else 1
    except Problem as problem:
        print(f"dist: {problem}", file=sys.stderr)
        return 1
    return 0
