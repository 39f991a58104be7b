"""What the benchmarks of NCCL share: nccl-tests' figures, railgauge's own, and the processes of ranks."""
import re
import subprocess
import sys
from pathlib import Path

from railgauge_bench import journal


def outcomes(run):
    """Pairs of a case's size and its outcome."""
    sizes = {}
    for kind, event in journal.events(Path(run) / "records.jsonl"):
        if kind == "Planned":
            sizes = {case["id"]: case["cell"]["size"] for case in journal.cases(event)}
        elif kind == "Outcome":
            yield sizes[event["case"]], event


def measured(command, run):
    """Runs railgauge: microseconds of one operation by size, and the record of the link. What fails ends the benchmark."""
    done = subprocess.run([*command, "-o", run, "-q"], capture_output=True, text=True, check=False)
    times, link = {}, None
    for size, outcome in outcomes(run):
        if "Err" in outcome["result"]:
            sys.exit(f"railgauge: {outcome['result']['Err']['cause']}")
        sample = outcome["result"]["Ok"]
        if sample["checked"]["wrong"] or not sample["checked"]["verified"]:
            sys.exit(f"railgauge: wrong or unverified data at {size} bytes")
        times[size], link = sample["initiator"]["latency"]["p50"] / 1e3, outcome["link"]
    if done.returncode != 0 or not times:
        sys.exit(f"railgauge ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return times, link


def perf(command):
    """Runs a program of nccl-tests: microseconds of one operation out of place by size, and the version of NCCL that it
    used. What fails ends the benchmark."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    times = {}
    for line in done.stdout.splitlines():
        words = line.split()
        # size count type redop root time algbw busbw wrong, then the same in place
        if len(words) >= 9 and re.fullmatch(r"\d+", words[0]) and words[2] == "float":
            if words[8] not in ("0", "N/A"):
                sys.exit(f"nccl-tests: wrong data: {line}")
            times[int(words[0])] = float(words[5])
    if done.returncode != 0 or not times:
        sys.exit(f"nccl-tests ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = re.search(r"nccl-library=(\d+)", done.stdout)
    number = int(found[1]) if found else 0
    return times, f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def children(pid):
    """Children of a process, by number."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[1] == str(pid):
            found.append(int(entry.name))
    return sorted(found)


def ranks(controller, variable="CUDA_VISIBLE_DEVICES"):
    """Processes of ranks below a controller, by the value that this variable has in their environment."""
    found = {}
    for agent in children(controller):
        for child in children(agent):
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            start = f"{variable}=".encode()
            seen = [value[len(start):].decode() for value in variables if value.startswith(start)]
            if b"--rank" in words and seen:
                found[seen[0]] = child
    return found


def is_left(pid):
    """Whether a process is still there, and no zombie."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
