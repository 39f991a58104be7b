"""Tries a release: unpacked, with nothing of the build around it."""
import json
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from .build import check_glibc
from .fetch import ARM, arm_libraries
from .shell import Problem, run, say, skipped

GREETING = b"\x01railgauge-agent\n"
ARM_ROOT = ("qemu-aarch64-static", "qemu-aarch64")
# Seconds that a program of a release may take on a busy machine: a run of local agents with an unoptimised controller, anything
# else.
RUN, SHORT = 600, 120


def limited(words, seconds, **options):
    """Run a program that must end in time."""
    try:
        return subprocess.run(words, timeout=seconds, check=False, **options)
    except subprocess.TimeoutExpired as error:
        raise Problem(f"`{' '.join(map(str, words[:4]))}` did not end within {seconds} s") from error


def bare(home):
    """The environment of a user who has nothing but the system."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "NO_COLOR": "1"}


def all_measured(status, cases):
    """Whether every case has data that was verified. 3 is a search for a bad part that could not decide: the rates of local
    agents on a busy machine scatter, which says nothing about a release."""
    return status in (0, 3) and cases["measured"] == cases["planned"] > 0 and not cases["wrong"] and not cases["unverified"]


def measure(program, plan, into):
    """Run a plan of local agents; refuse one with a case that was not measured or not verified."""
    done = limited([program, "-q", "run", plan, "-o", into / "run"], RUN, cwd=into, env=bare(into), stdout=subprocess.PIPE,
                   stderr=subprocess.STDOUT, text=True)
    verdicts = into / "run/verdicts.json"
    cases = json.loads(verdicts.read_text("utf-8"))["cases"] if verdicts.is_file() else None
    if cases is None or not all_measured(done.returncode, cases) or not (into / "run/report.html").is_file():
        raise Problem(f"{program} run {plan} ended with status {done.returncode}, cases {cases}: {done.stdout[-2000:]}")
    return cases["measured"]


def tarball(release, into):
    """Unpack, check the sums, follow a link to the program, measure."""
    run("tar", "xf", release.tarball, "-C", into, timeout=SHORT)
    folder = into / release.name
    run("sha256sum", "--quiet", "-c", "SHA256SUMS", cwd=folder, timeout=SHORT)
    link = into / "railgauge"
    link.symlink_to(folder / "bin/railgauge")
    home = into / "home"
    home.mkdir()
    cases = measure(link, folder / "plans/quickstart.toml", home)
    say(f"the unpacked tarball measured {cases} cases")
    return folder


def package(release, into):
    """Unpack the Debian package and have its program find the agents below lib."""
    root = into / "package"
    run("dpkg-deb", "-x", release.package, root, timeout=SHORT)
    home = into / "home2"
    home.mkdir()
    plan = root / "usr/share/doc/railgauge/plans/quickstart.toml"
    done = limited([root / "usr/bin/railgauge", "-q", "preflight", plan], SHORT, cwd=home, env=bare(home), stdout=subprocess.DEVNULL)
    # 3: the facts of a machine without RDMA leave things open; without an agent it would be 4.
    if done.returncode not in (0, 3):
        raise Problem(f"the package's `railgauge preflight` ended with status {done.returncode}")
    for part in [f"usr/lib/railgauge/{agent.name}" for agent in release.agents] + ["usr/share/man/man1/railgauge-run.1.gz"]:
        if not (root / part).is_file():
            raise Problem(f"the package has no {part}")


def shells(folder):
    """Completions are read by their shells, manual pages by man, where these are installed."""
    share = folder / "share"
    places = (("bash", "bash-completion/completions/railgauge"), ("zsh", "zsh/site-functions/_railgauge"),
              ("fish", "fish/vendor_completions.d/railgauge.fish"))
    for shell, file in places:
        if shutil.which(shell):
            run(shell, "-n", share / file, timeout=SHORT)
        else:
            skipped(f"completions for {shell}: it is not installed")
    pages = sorted((share / "man/man1").glob("railgauge*.1"))
    if len(pages) < 10 or any(b".SH NAME" not in page.read_bytes() for page in pages):
        raise Problem(f"there are {len(pages)} manual pages, or one has no name")
    if shutil.which("bash"):
        script = f'. {share / places[0][1]}; COMP_WORDS=(railgauge pre); COMP_CWORD=1; _railgauge railgauge pre railgauge; ' \
                 'echo "${COMPREPLY[@]}"'
        if run("bash", "-c", script, timeout=SHORT).split() != ["preflight"]:
            raise Problem("bash does not complete `railgauge pre` to `preflight`")


def greets(words, version):
    """Start an agent, greet it, ask it to end. `version` is the protocol's."""
    def frame(message):
        data = json.dumps(message).encode()
        return struct.pack(">I", len(data)) + data
    hello = {"id": 1, "ask": {"Hello": {"protocol": version, "run_id": "dist", "host": "dist"}}}
    done = limited(words, SHORT, input=frame(hello) + frame({"id": 2, "ask": "Bye"}), stdout=subprocess.PIPE)
    if done.returncode != 0 or not done.stdout.startswith(GREETING) or b'"Hello"' not in done.stdout:
        raise Problem(f"{words[-1]} did not greet: status {done.returncode}, {done.stdout[:200]!r}")


def check(release, protocol):
    """All of it."""
    for agent in release.agents:
        check_glibc(release.folder / "bin" / agent.name, agent.glibc)
    with tempfile.TemporaryDirectory() as name:
        into = Path(name)
        folder = tarball(release, into)
        package(release, into)
        shells(folder)
        for agent in release.agents:
            words = [folder / "bin" / agent.name]
            if agent.target == ARM:
                emulator = next(filter(None, map(shutil.which, ARM_ROOT)), None)
                libraries = arm_libraries() if emulator else None
                if libraries is None:
                    skipped("the agent for aarch64 was not started: no qemu-aarch64-static, or no C library for it")
                    continue
                words = [emulator, "-L", libraries, *words]
            greets(words, protocol)
            say(f"{agent.name} greets")
