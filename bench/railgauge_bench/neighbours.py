"""Hosts and leaf switches that are network namespaces with an lldpd each: what `lldpcli -f json show neighbors` prints on every host.

Rail r of each host is at port h of leaf r+1, as veth pairs. Needs root and Debian's lldpd. Daemons end by process number.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# Seconds until all neighbours are heard on a busy machine.
PATIENCE = 40


class Hosts:
    """Namespaces for the hosts and the leaves, joined as `leaf_of(host, rail)` says; hosts and leaves count from 1."""

    def __init__(self, hosts, rails, leaf_of):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="railgauge-lldp-"))
        # lldpd gives up its rights before it reads its own socket.
        self.place.chmod(0o755)
        self.names = [*(f"gpu{host:03}" for host in range(1, hosts + 1)), *(f"leaf{leaf}" for leaf in range(1, rails + 1))]
        self.hosts, self.rails = hosts, rails
        self.daemons, self.made = [], []
        try:
            for name in self.names:
                self._ip("netns", "add", self.space(name))
                self.made.append(name)
            for host in range(1, hosts + 1):
                for rail in range(rails):
                    self._cable(f"gpu{host:03}", f"ens{rail}np0", f"leaf{leaf_of(host, rail)}", f"Ethernet{host}")
            for name in self.names:
                self._daemon(name)
            for name in self.names:
                self._configured(name)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def space(self, name):
        return f"rgn{os.getpid()}-{name}"

    def _ip(self, *words):
        subprocess.run(["ip", *words], check=True, env={**os.environ, "PATH": PATH})

    def _cable(self, host, interface, leaf, port):
        self._ip("link", "add", interface, "netns", self.space(host), "type", "veth", "peer", "name", port, "netns", self.space(leaf))
        self._ip("-n", self.space(host), "link", "set", interface, "up")
        self._ip("-n", self.space(leaf), "link", "set", port, "up")

    def _daemon(self, name):
        command = ["ip", "netns", "exec", self.space(name), "lldpd", "-d", "-u", str(self.place / name)]
        with open(self.place / f"{name}.log", "wb") as log:
            self.daemons.append(subprocess.Popen(command, env={**os.environ, "PATH": PATH}, stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=subprocess.STDOUT))

    def _lldpcli(self, name, *words):
        command = ["lldpcli", "-u", str(self.place / name), *words]
        return subprocess.run(command, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, timeout=10, check=False)

    def _configured(self, name):
        end, log = time.monotonic() + PATIENCE, self.place / f"{name}.log"
        # It begins paused, until an lldpcli of its own has configured it. What is changed before that may leave it deaf.
        while "resume operations" not in log.read_text() or self._lldpcli(name, "configure", "system", "hostname", name).returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"lldpd of {name} does not answer: {log.read_text()[-1000:]}")
            time.sleep(0.1)
        if name.startswith("leaf"):
            self._lldpcli(name, "configure", "system", "capabilities", "enabled", "bridge")
        self._lldpcli(name, "configure", "lldp", "tx-interval", "1")

    def heard(self):
        """By host, what lldpcli prints once every rail has a neighbour that has its name."""
        texts, end = {}, time.monotonic() + PATIENCE
        for host in self.names[: self.hosts]:
            while (text := self._lldpcli(host, "-f", "json", "show", "neighbors").stdout).count('"leaf') < self.rails:
                if time.monotonic() > end:
                    raise RuntimeError(f"{host} hears too few neighbours: {text}")
                time.sleep(0.2)
            texts[host] = text
        return texts

    def close(self):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in self.made:
            subprocess.run(["ip", "netns", "del", self.space(name)], check=False, env={**os.environ, "PATH": PATH})
        shutil.rmtree(self.place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Writes HOST.json for hosts whose rails are network namespaces away from their leaves.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rails", type=int, default=2)
    parser.add_argument("--swap", type=int, action="append", default=[], metavar="HOST", help="exchange the first two rails of a host")
    parser.add_argument("--then", nargs=argparse.REMAINDER, metavar="WORD", help="run this while the daemons run; `spaces` in the directory has "
                        "a line HOST NAMESPACE SOCKET for each host")
    chosen = parser.parse_args()
    if os.geteuid() != 0 or any(shutil.which(name, path=PATH) is None for name in ("lldpd", "lldpcli", "ip")):
        print("cannot hear neighbours: needs root, lldpd and iproute2", file=sys.stderr)
        return 77
    swapped = {0: 1, 1: 0}
    chosen.directory.mkdir(parents=True, exist_ok=True)

    def leaf_of(host, rail):
        return 1 + (swapped.get(rail, rail) if host in chosen.swap else rail)

    with Hosts(chosen.hosts, chosen.rails, leaf_of) as hosts:
        for host, text in hosts.heard().items():
            (chosen.directory / f"{host}.json").write_text(text)
        if chosen.then:
            lines = [f"{host} {hosts.space(host)} {hosts.place / host}\n" for host in hosts.names[: chosen.hosts]]
            (chosen.directory / "spaces").write_text("".join(lines))
            return subprocess.run(chosen.then, env={**os.environ, "PATH": PATH}, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
