"""Taking a lab down for a user who may die first, such as a test program."""
import os
import select


def down_after(lab, process):
    """Leave a small process behind that waits for another to end and then takes this lab, and no later one, down."""
    try:
        ended = os.pidfd_open(process)
    except ProcessLookupError:
        lab.down()
        return
    if os.fork():
        os.close(ended)
        return
    try:
        leave_terminal()
        mine = identity(lab)
        poller = select.poll()
        poller.register(ended, select.POLLIN)  # a process descriptor becomes readable when its process ends
        while identity(lab) == mine:
            if poller.poll(2000):
                lab.down()
                break
    finally:
        os._exit(0)


def leave_terminal():
    """Hold on to nothing of the caller: not its session, not its folder, not its output."""
    os.setsid()
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def identity(lab):
    """What tells a lab's folder from a later one of the same name."""
    try:
        status = lab.settings.directory.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
