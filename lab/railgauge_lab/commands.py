"""The command line of the lab."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

from .errors import LabError, Usage
from .fabric import LARGEST_MTU, bucket
from .lab import Lab
from .mend import mend
from .settings import MOST_HOSTS, SSH_PORT, Settings
from .watch import down_after


def main(arguments):
    """Run one command and return the exit code."""
    options = parser().parse_args(arguments)
    try:
        lab = Lab(Settings.from_environment(), lambda line: print(f"lab: {line}", file=sys.stderr, flush=True))
        return options.run(lab, options) or 0
    except LabError as error:
        print(f"{error.label}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def parser():
    """All commands and their words."""
    top = argparse.ArgumentParser(prog="lab", description="N virtual hosts with Soft-RoCE on a virtual fabric.",
                                  epilog="Exit codes: 70 the lab failed, 77 no lab can run here, 2 wrong words.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, summary, *words):
        sub = commands.add_parser(name, help=summary, description=summary)
        for word, settings in words:
            sub.add_argument(word, **settings)
        sub.set_defaults(run=run)

    host = ("host", {"type": int, "metavar": "I", "help": "number of the host"})
    port = ("port", {"metavar": "I[.NIC]", "help": "a host, or one of its NICs, counted from 0"})
    rest = ("words", {"nargs": argparse.REMAINDER, "metavar": "CMD", "help": "command and arguments"})
    arm = ("--arm", {"action": "store_true", "help": "also for Arm guests"})
    command("check", lambda lab, o: lab.check(o.arm), "whether this machine can run a lab: exit code 77 and why if not", arm)
    command("build", lambda lab, o: lab.build(o.arm), "make the guests' kernel and image; `up` does so too", arm)
    command("up", up, "start N hosts; returns when ssh works on all of them",
            ("hosts", {"type": int, "metavar": "N"}),
            ("--nics", {"type": int, "default": 1, "choices": [1, 2], "help": "fabric NICs, one per rail"}),
            ("--mtu", {"type": int, "default": LARGEST_MTU, "help": "MTU of the fabric NICs (default %(default)s)"}),
            ("--arm", {"type": int, "action": "append", "default": [], "metavar": "I",
                       "help": "make host number I an Arm host (aarch64); may be given several times"}),
            ("--while", {"type": int, "metavar": "PID", "dest": "process", "help": "end the lab when PID ends"}))
    command("down", lambda lab, _: lab.down(), "end all hosts and leave nothing behind but the cached image")
    command("status", status, "what every host is doing; exit code 70 if one died by itself",
            ("--json", {"action": "store_true"}),
            ("--clocks", {"action": "store_true", "help": "also ask every host, by ssh, how fast its clock runs"}))
    command("ssh", ssh, "run a command on a host", host, rest)
    command("kill", lambda lab, o: lab.machine(o.host).kill(), "pull a host's power cord", host)
    command("start", lambda lab, o: lab.start(o.host), "boot a killed host; returns when ssh works", host)
    command("pause", lambda lab, o: lab.machine(o.host).pause(True), "freeze a host", host)
    command("resume", lambda lab, o: lab.machine(o.host).pause(False), "let a frozen host go on", host)
    command("link", link, "down: the switch port loses every frame and the host is not told", port,
            ("state", {"choices": ["up", "down"]}))
    command("cable", cable, "out: the host sees its link go down", port, ("state", {"choices": ["in", "out"]}))
    command("rate", rate, "shape a NIC in both directions", port, ("rate", {"metavar": "40mbit|off"}))
    command("path", path, "shape only what passes between two hosts, in both directions; it replaces the shaping of "
            "their switch ports", port, ("peer", {"type": int, "metavar": "J", "help": "number of the other host"}),
            ("rate", {"metavar": "40mbit|off"}),
            ("--udp-source-port", {"type": int, "metavar": "PORT", "help": "only packets with this one, as if several "
                                   "equal paths led there and one of them were bad"}))
    command("sshd", sshd, "refuse: connections to the host's ssh port are refused", host,
            ("state", {"choices": ["accept", "refuse"]}))
    command("mend", lambda lab, _: mend(lab), "undo all of these: every host runs and every link is whole")
    command("ns", namespace, "run a command among the switches (addresses end in .254)", rest)
    command("clean", clean, "remove the cached kernel and image")
    return top


def up(lab, options):
    if not 1 <= options.hosts <= MOST_HOSTS:
        raise Usage(f"a lab has 1 to {MOST_HOSTS} hosts, not {options.hosts}")
    if not 576 <= options.mtu <= LARGEST_MTU:
        raise Usage(f"the MTU is 576 to {LARGEST_MTU}, not {options.mtu}")
    wrong = [host for host in options.arm if not 1 <= host <= options.hosts]
    if wrong:
        raise Usage(f"--arm {wrong[0]}: this lab has hosts 1 to {options.hosts}")
    lab.up(options.hosts, options.nics, options.mtu, options.arm)
    if options.process is not None:
        down_after(lab, options.process)
    print(f"{options.hosts} hosts up; `ssh -F {lab.settings.ssh_config} lab1` reaches the first")


def status(lab, options):
    """Print every host's state; one that died by itself, complains or has a wrong clock makes the exit code 70."""
    settings, nics = lab.settings, lab.shape()["nics"]
    rows = []
    for machine in lab.machines():
        rows.append({
            "host": machine.name, "state": machine.state(), "pid": machine.pid(),
            "architecture": lab.architecture(machine.host).name,
            "ssh": f"{settings.ssh_address(machine.host)}:{SSH_PORT}",
            "fabric": [settings.fabric_address(nic, machine.host) for nic in range(nics)],
            "trouble": machine.trouble() + (lab.clock_trouble(machine) if options.clocks else []),
        })
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['host']:6} {row['state']:8} {row['ssh']:18} {' '.join(row['fabric'])}")
    died = [row for row in rows if row["state"] == "died" or row["trouble"]]
    if died:
        words = [f"{row['host']} {row['state']}" + "".join(f"\n    {line}" for line in row["trouble"]) for row in died]
        raise LabError("\n".join(words))


def ssh(lab, options):
    lab.machine(options.host)
    command = lab.ssh_command(options.host, options.words)
    os.execvp(command[0], command)


def link(lab, options):
    for host, nic in ports(lab, options.port):
        lab.fabric.set_link(host, nic, options.state)


def cable(lab, options):
    for host, nic in ports(lab, options.port):
        lab.machine(host).monitor("set_link", name=f"nic{nic}", up=options.state == "in")


def rate(lab, options):
    """Towards the host the switch port is shaped; what the host sends is shaped as it leaves the host."""
    wanted = None if options.rate == "off" else options.rate
    for host, nic in ports(lab, options.port):
        lab.fabric.set_rate(host, nic, wanted)
        change = ["del"] if wanted is None else ["replace"]
        words = ["tc", "qdisc", *change, "dev", f"eth{nic + 1}", "root", *([] if wanted is None else bucket(wanted))]
        done = subprocess.run(lab.ssh_command(host, [str(word) for word in words]), capture_output=True, check=False)
        if done.returncode not in ((0, 2) if wanted is None else (0,)):
            raise LabError(f"lab{host}: tc did not shape eth{nic + 1}: {done.stderr.decode(errors='replace').strip()}")


def path(lab, options):
    peer = lab.machine(options.peer).host
    for host, nic in ports(lab, options.port):
        if host == peer:
            raise Usage(f"lab{host} has no path to itself")
        lab.fabric.set_path([host, peer], nic, None if options.rate == "off" else options.rate, options.udp_source_port)


def sshd(lab, options):
    lab.machine(options.host).let_in(options.state == "accept")


def namespace(lab, options):
    lab.shape()
    lab.fabric.enter(options.words or ["bash"])


def clean(lab, _):
    if lab.settings.directory.exists():
        raise Usage(f"a lab is up in {lab.settings.directory}; `lab down` first")
    shutil.rmtree(lab.settings.cache, ignore_errors=True)


def ports(lab, text):
    """`3.1` -> host 3, NIC 1; `3` -> every NIC of host 3."""
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?", text)
    if not match:
        raise Usage(f"{text}: a host's number is needed, or host.NIC such as 2.1")
    host = lab.machine(int(match[1])).host
    if match[2] is not None:
        return [(host, lab.nic(int(match[2])))]
    return [(host, nic) for nic in range(lab.shape()["nics"])]
