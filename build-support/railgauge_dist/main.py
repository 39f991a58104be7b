"""The command line of ./dist."""
import argparse
import re
import sys
from pathlib import Path

from . import check, pack
from .build import X86, Builder, check_glibc, debug_controller, newest_glibc, own_agent
from .licences import third_party
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


def main(words):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="./dist", description="Makes a release: a tarball and a Debian package with the "
                                     "controller, agents for x86_64 and aarch64, completions, manual pages and plans.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "release", help="folder to write to [default: %(default)s]")
    parser.add_argument("--quick", action="store_true",
                        help="with an unoptimised controller, to try everything else; not for use on a cluster")
    parser.add_argument("--glibc", nargs=2, metavar=("FILE", "VERSION"),
                        help="only check that a program starts with this version of glibc")
    arguments = parser.parse_args(words)
    try:
        if arguments.glibc:
            print(f"needs glibc {check_glibc(*arguments.glibc)}")
        else:
            make(arguments)
    except Problem as problem:
        print(f"dist: {problem}", file=sys.stderr)
        return 1
    return 0
