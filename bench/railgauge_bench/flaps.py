"""Networks whose cables can be taken out: of namespaces on this machine, or the lab's virtual hosts."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class NamespaceNetwork:
    """Hosts as network namespaces on one bridge; a cable is a pair of virtual interfaces, taken out at the bridge's end."""

    transport, rate, knobs = "tcp", "100 Mb/s", ""

    def __init__(self, hosts):
        self.prefix = f"rgs{os.getpid()}"
        self.names = [f"{self.prefix}-{host}" for host in range(hosts)]
        self.switch = f"{self.prefix}-sw"

    def __enter__(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge", "forward_delay", 0)
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{number}", "netns", self.switch)
            ip("-n", self.switch, "link", "set", f"p{number}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.78.0.{number + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def launch(self):
        """The plan's words on how agents are started, and on hosts."""
        names = ", ".join(f'"{name}"' for name in self.names)
        return f'launch = {{ via = "command", command = ["ip", "netns", "exec", "{{host}}"] }}\nhosts = {{ names = [{names}], tcp = ["eth0"] }}'

    def cable(self, host, is_in):
        ip("-n", self.switch, "link", "set", f"p{host}", "up" if is_in else "down")


class LabNetwork:
    """Hosts of the lab, which must be up; the emulator takes their first NIC's cable out."""

    transport, rate = "verbs", "8 Mb/s"
    # Soft-RoCE takes a retry count of 7 as infinite.
    # The hosts share a few cores, so acknowledgements are late.
    knobs = 'knobs = { depth = 16, timeout = 18, retry_count = 6, completion = "events" }'

    def __init__(self, hosts):
        self.lab = str(ROOT / "lab/lab")
        self.names = [f"lab{host + 1}" for host in range(hosts)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.lab, "mend"], check=False)

    def launch(self):
        """The plan's words on how agents are started, and on hosts."""
        config = pathlib.Path(os.environ.get("LAB_RUN", "/var/tmp/railgauge-lab")) / "ssh_config"
        names = ", ".join(f'"{name}"' for name in self.names)
        return f'launch = {{ via = "ssh", ssh = {{ config = "{config}" }} }}\nhosts = {{ names = [{names}] }}'

    def cable(self, host, is_in):
        subprocess.run([self.lab, "cable", str(host + 1), "in" if is_in else "out"], check=True, stdout=subprocess.DEVNULL)
