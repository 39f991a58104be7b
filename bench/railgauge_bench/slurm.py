"""A real Slurm on this machine: munged, slurmctld and several slurmd with a directory, ports and a key of their own.

Everything listens on loopback, runs as root, and ends by process number with the object. A slurmd for each node, `slurmd -N n1`,
runs steps as processes of this machine. With `cables` each slurmd is in a network namespace, with a veth pair to a bridge of this machine.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

NEEDED = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "srun": "slurm-client"}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# Time for daemons to come up on a busy machine, and for the nodes to be idle.
PATIENCE = 40
# Most nodes below one leaf switch.
LEAF = 2

CONF = """
ClusterName=railgauge
SlurmctldHost={host}({head})
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
# The times of a large cluster are minutes.
SlurmctldTimeout=5
SlurmdTimeout={silence}
MessageTimeout=5
UnkillableStepTimeout=8
KillWait=2
InactiveLimit=0
OverTimeLimit=0
ReturnToService=2
MaxNodeCount={count}
DebugFlags=NO_CONF_HASH
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=closed Nodes=ALL State=DOWN
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port} CPUs={cpus} RealMemory=1000 Gres=gpu:2 State=UNKNOWN"


def missing():
    """The packages that are not installed."""
    return sorted({package for name, package in NEEDED.items() if shutil.which(name, path=PATH) is None})


# Ports from which the kernel gives none to clients (ip_local_port_range begins at 32768): a client that takes one between the look and
# the daemon's start would stand in its way.
PORTS = range(15000, 32000)


def free_ports(count):
    """Ports of loopback that nobody uses at this moment."""
    held = []
    for port in random.sample(PORTS, len(PORTS)):
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", port))
            held.append(one)
        except OSError:
            one.close()
        if len(held) == count:
            break
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Cables:
    """A network namespace for each node, with a cable from its eth0 to a bridge on which this machine has an address."""

    HEAD = "10.85.0.254"

    def __init__(self, names):
        self.bridge = f"rgs{os.getpid()}"
        self.names = names
        try:
            _ip("link", "add", self.bridge, "type", "bridge")
            _ip("addr", "add", f"{self.HEAD}/24", "dev", self.bridge)
            _ip("link", "set", self.bridge, "up")
            for name in names:
                self._plug(name)
        except BaseException:
            self.close()
            raise

    def _plug(self, name):
        space, port = self.space(name), self.port(name)
        _ip("netns", "add", space)
        _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", port, "master", self.bridge, "up")
        _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", space, "link", "set", device, "up")

    def space(self, name):
        return f"{self.bridge}-{name}"

    def inside(self, name):
        """The words before a command of a node, which is a host of that name."""
        return ["ip", "netns", "exec", self.space(name), "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]

    def port(self, name):
        return f"{self.bridge}{name}"

    def address(self, name):
        return f"10.85.0.{self.names.index(name) + 1}"

    def close(self):
        for name in self.names:
            _ip("netns", "del", self.space(name), check=False)
        _ip("link", "del", self.bridge, check=False)


def _ip(*words, check=True):
    """Fails unless the network is as it is asked to be; what is to be removed may be gone."""
    quiet = None if check else subprocess.DEVNULL
    subprocess.run(["ip", *words], env={**os.environ, "PATH": PATH}, stderr=quiet, check=check)


class Slurm:
    """A running Slurm of `count` nodes n1, n2, ... with two made-up GPUs each, two nodes to a leaf switch."""

    def __init__(self, count=4, silence=6, task="task/affinity", cpus=None, memlock=None, cables=False):
        self.names = [f"n{number}" for number in range(1, count + 1)]
        self.cables = None
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="railgauge-slurm-"))
        self.count = count
        self.started = {}
        self.memlock = memlock
        try:
            self.cables = Cables(self.names) if cables else None
            self._configure(silence, task, cpus or os.cpu_count())
            self._up()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def environment(self):
        """What programs need to find this Slurm and no other."""
        # From inside another job its variables would be taken for options.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "SALLOC_"))}
        return {**kept, "SLURM_CONF": str(self.place / "slurm.conf"), "PATH": PATH}

    def _configure(self, silence, task, cpus):
        host = socket.gethostname().split(".")[0]
        controller, *ports = free_ports(self.count + 1)
        names, cables = self.names, self.cables
        addresses = [cables.address(name) if cables else "127.0.0.1" for name in names]
        nodes = [NODE.format(name=name, host=name if cables else host, address=address, port=port, cpus=cpus)
                 for name, address, port in zip(names, addresses, ports)]
        text = CONF.format(host=host, head=cables.HEAD if cables else "127.0.0.1", place=self.place, controller=controller,
                           silence=silence, task=task, count=self.count, nodes="\n".join(nodes))
        for folder in ("state", "spool", *(f"spool/{name}" for name in names)):
            (self.place / folder).mkdir()
        leaves = [names[at:at + LEAF] for at in range(0, self.count, LEAF)]
        tree = [f"SwitchName=leaf{number} Nodes={','.join(leaf)}" for number, leaf in enumerate(leaves, 1)]
        tree.append(f"SwitchName=spine Switches={','.join(f'leaf{number}' for number in range(1, len(leaves) + 1))}")
        # Files that any process may open stand for GPUs: no device is constrained.
        files = ["/dev/null", "/dev/zero"]
        gpus = [f"Name=gpu File={file}" for file in files]
        self._write("slurm.conf", text)
        self._write("topology.conf", "\n".join(tree) + "\n")
        self._write("gres.conf", "\n".join(gpus) + "\n")
        # No plugin in use needs cgroups, and where this program runs nobody may be allowed to make some.
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        key = self.place / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))

    def _write(self, name, text):
        (self.place / name).write_text(text)

    def _start(self, name, words, memlock=None):
        limit = ["prlimit", f"--memlock={memlock}:{memlock}", "--"] if memlock else []
        log = open(self.place / f"{name}.out", "ab")
        self.started[name] = subprocess.Popen([*limit, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log, start_new_session=True)
        log.close()

    def start_node(self, name):
        """Starts the slurmd of a node."""
        inside = self.cables.inside(name) if self.cables else []
        self._start(name, [*inside, "slurmd", "-D", "-N", name], self.memlock)

    def _up(self):
        place = self.place
        self._start("munged", ["munged", "--foreground", "--force", f"--key-file={place}/munge.key",
                               f"--socket={place}/munge.socket", f"--pid-file={place}/munge.pid",
                               f"--log-file={place}/munge.log", f"--seed-file={place}/munge.seed", "--num-threads=2"])
        self._until(lambda: (place / "munge.socket").exists(), "munged does not come up")
        self._start("slurmctld", ["slurmctld", "-D", "-i"])
        for name in self.names:
            self.start_node(name)
        self._until(lambda: self.states().count("idle") == self.count, "the nodes are not idle")

    def states(self):
        """The state of each node, in words of sinfo."""
        said = subprocess.run(["sinfo", "-h", "-N", "-p", "main", "-o", "%T"], env=self.environment, capture_output=True,
                              text=True, check=False)
        return said.stdout.split()

    def _until(self, is_so, otherwise):
        end = time.monotonic() + PATIENCE
        while not is_so():
            for name, process in self.started.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended: {self.last(name)}")
            if time.monotonic() > end:
                raise RuntimeError(f"{otherwise}: {self.last('slurmctld')}")
            time.sleep(0.1)

    def last(self, name):
        """The last words of a daemon."""
        texts = [path.read_text(errors="replace") for path in
                 (self.place / f"{name}.out", self.place / f"slurmd-{name}.log", self.place / f"{name}.log") if path.exists()]
        return " / ".join("".join(texts).splitlines()[-6:])

    def told(self):
        """What tests need to know, as one line of JSON."""
        pids = {name: process.pid for name, process in self.started.items()}
        cables = {name: [self.cables.space(name), self.cables.port(name)] for name in self.names} if self.cables else {}
        return json.dumps({"conf": str(self.place / "slurm.conf"), "place": str(self.place), "pids": pids, "cables": cables})

    def close(self):
        """Ends all jobs and all daemons, and removes the directory."""
        if "slurmctld" in self.started and self.started["slurmctld"].poll() is None:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
            try:
                subprocess.run(["scancel", "--full", "--signal=KILL", "--user=root"], env=self.environment, timeout=10, **quiet)
            except subprocess.TimeoutExpired:
                pass
        for name in reversed(self.started):
            process = self.started[name]
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.started.values():
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self.steps():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.cables:
            self.cables.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def steps(self):
        """Processes of this Slurm's steps: the slurmstepd that carry its file in their environment."""
        ours = f"SLURM_CONF={self.place}/slurm.conf".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if (entry / "comm").read_text().startswith("slurmstepd") and ours in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found
