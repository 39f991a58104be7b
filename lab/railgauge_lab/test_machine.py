"""Tests of what becomes of a guest: `python3 -m unittest railgauge_lab.test_machine` in the folder above."""
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .machine import Machine

# Listens, as a guest's ssh port does, and has as much memory to give back as a guest.
LISTENER = """
import mmap, socket, time
listener = socket.create_server(("127.0.0.1", 0))
memory = mmap.mmap(-1, 1 << 29)
for page in range(0, 1 << 29, mmap.PAGESIZE):
    memory[page] = 1
print(listener.getsockname()[1], flush=True)
time.sleep(600)
"""


class Settings:
    """A lab of one host."""

    def __init__(self, folder):
        self.folder = folder

    def host_directory(self, _host):
        return self.folder


class AKilledGuest(unittest.TestCase):
    def test_is_gone_with_its_ports(self):
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                words = [sys.executable, "-c", LISTENER, f"file:{folder}/console"]
                with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as guest:
                    port = int(guest.stdout.readline())
                    (folder / "pid").write_text(f"{guest.pid}\n")
                    Machine(Settings(folder), 1).kill()
                    with self.assertRaises(ConnectionRefusedError):
                        socket.create_connection(("127.0.0.1", port), timeout=5)


if __name__ == "__main__":
    unittest.main()
