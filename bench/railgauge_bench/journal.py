"""The journal of a run as docs/formats.md describes it: cases stand in tables, links in lines of their own."""
import json
import re
import zlib

ENDING = re.compile(rb',"sum":"([0-9a-f]{8})"}\n$')


def cases(planned):
    """The whole cases of `Planned` or `Confirming`."""
    table = planned["cases"]
    if isinstance(table, list):
        return table
    ports = table["ports"]
    return [
        {"id": number, "test": table["tests"][test], "round": round_, "cell": table["cells"][cell],
         "flow": {"from": ports[from_], "to": ports[to], "members": [ports[member] for member in members]}}
        for number, (test, round_, cell, from_, to, *members) in enumerate(table["rows"], table["first"])
    ]


def events(path):
    """Pairs of an event's name and what it holds; the link of an outcome stands in it, or None."""
    links = {}
    with open(path) as journal:
        for line in journal:
            line = json.loads(line)
            if not isinstance(line["event"], dict):
                continue
            for kind, event in line["event"].items():
                if kind == "Link":
                    links[line["n"]] = event
                if kind == "Outcome":
                    zeros(event)
                    event["link"] = event.get("link") or links.get(event.get("link_line"))
                yield kind, event


def zeros(outcome):
    """Puts the zeros into an outcome that a journal leaves out."""
    outcome.setdefault("repeat", 0)
    sample = outcome["result"].get("Ok")
    for checked in [sample["checked"], *(rank.get("checked") or {} for rank in sample.get("ranks", []))] if sample else []:
        checked.setdefault("wrong", 0)


def measured(journal):
    """How often each case and repeat has a result, by the lines whose sum is right; and the lines that were cut or damaged."""
    counts, bad, run = {}, 0, b""
    for line in journal.read_bytes().splitlines(keepends=True) if journal.exists() else []:
        ending = ENDING.search(line)
        # The first line names its run, and the sums of the others count its name in.
        if not ending or zlib.crc32(run + line[: ending.start()]) != int(ending.group(1), 16):
            bad += 1
            continue
        line = json.loads(line)
        run = run or line["run"].encode()
        outcome = line["event"].get("Outcome") if isinstance(line["event"], dict) else None
        if outcome and "Ok" in outcome["result"]:
            zeros(outcome)
            key = (outcome["case"], outcome["repeat"])
            counts[key] = counts.get(key, 0) + 1
    return counts, bad
