#!/usr/bin/env python3
"""A way to a host that takes its time: starts a program here, and holds back what goes in and what comes out.

usage: delay.py MILLISECONDS HOST PROGRAM [ARGUMENT...]

The host's name is not used: every host is this machine.

Every byte arrives so many milliseconds after it was sent, in its order; however many are under way, none waits for another. What
the program says on its standard error, and its end, are held back as long.
"""
import os
import queue
import subprocess
import sys
import threading
import time

BLOCK = 1 << 16


def carry(source, sink, seconds, close):
    """Carries bytes from one descriptor to another, each piece `seconds` later; returns the threads."""
    pieces = queue.Queue()

    def read():
        while True:
            try:
                piece = os.read(source, BLOCK)
            except OSError:
                piece = b""
            pieces.put((time.monotonic() + seconds, piece))
            if not piece:
                return

    def write():
        while True:
            due, piece = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                if close:
                    os.close(sink)
                return
            try:
                while piece:
                    piece = piece[os.write(sink, piece):]
            except OSError:
                # Nobody reads any more; the end of the program tells the rest.
                return

    threads = [threading.Thread(target=work, daemon=True) for work in (read, write)]
    for thread in threads:
        thread.start()
    return threads


def main():
    seconds = float(sys.argv[1]) / 1e3
    child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    carry(0, os.dup(child.stdin.fileno()), seconds, True)
    child.stdin.close()
    out = carry(child.stdout.fileno(), 1, seconds, False) + carry(child.stderr.fileno(), 2, seconds, False)
    code = child.wait()
    for thread in out:
        thread.join()
    # What was read from the pipe that led to the child cannot be taken back: no thread may hold the process up.
    os._exit(code if code >= 0 else 128 - code)


main()
