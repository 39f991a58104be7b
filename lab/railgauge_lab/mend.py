"""A lab as it was after `up`: all hosts at once, for every test begins with it."""
import subprocess
from concurrent.futures import ThreadPoolExecutor

from .errors import LabError


def mend(lab):
    """Bring every host up and every link to its full state, rate and MTU; say which hosts died by themselves."""
    machines = lab.machines()
    with ThreadPoolExecutor(len(machines)) as workers:
        for failure in list(workers.map(lambda machine: failed(lab, machine), machines)):
            if failure:
                raise failure


def failed(lab, machine):
    """Mends a host; the error that prevented it, so that the others are mended all the same."""
    try:
        mend_host(lab, machine)
    except LabError as error:
        return error
    return None


def mend_host(lab, machine):
    shape, state = lab.shape(), machine.state()
    if state == "died":
        lab.say(f"LAB FAILURE: {machine.name} died by itself: {machine.trouble()}")
        machine.kill()
    if state in ("died", "killed"):
        # A host that boots has new switch ports and knows of no shaping.
        lab.start(machine.host)
        return
    if state == "paused":
        machine.pause(False)
    machine.let_in(True)
    undo = []
    for nic in range(shape["nics"]):
        lab.fabric.set_link(machine.host, nic, "up")
        lab.fabric.set_rate(machine.host, nic, None)
        machine.monitor("set_link", name=f"nic{nic}", up=True)
        # There may be no shaping to take away.
        undo.append(f"tc qdisc del dev eth{nic + 1} root 2>/dev/null; ip link set eth{nic + 1} mtu {shape['mtu']}")
    done = subprocess.run(lab.ssh_command(machine.host, [" && ".join(undo)]), stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{machine.name} cannot be mended: {done.stderr.decode(errors='replace').strip()}")
