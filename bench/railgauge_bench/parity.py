"""Differences between two programs' facts, and the list of those that are meant."""
import sys
import tomllib
from fnmatch import fnmatchcase

ENDS = ("near", "far")
KEYS = {"cases", "ends", "fact", "perftest", "ours", "reason"}
ABSENT = "-"


def compare(case, end, theirs, ours):
    """Every fact that differs at one end of a case. Where only one program brings the queue pair to a state, or has an
    address handle, that is the difference, and what it did there has nothing to be compared with."""
    alone = {f"{state}." for facts in (theirs, ours) for state in facts.get("transitions", "").split()
             if any(state not in other.get("transitions", "").split() for other in (theirs, ours))}
    if "0" in (theirs.get("address handles"), ours.get("address handles")):
        alone.add("create_ah.")
    for fact in dict.fromkeys([*theirs, *ours]):
        if fact.startswith(tuple(alone)):
            continue
        values = theirs.get(fact, ABSENT), ours.get(fact, ABSENT)
        if values[0] != values[1]:
            yield {"case": case, "end": end, "fact": fact, "perftest": values[0], "ours": values[1]}


def read_list(path):
    """The meant differences of a file; ends the program where one is not whole."""
    entries = tomllib.loads(path.read_text()).get("difference", [])
    for number, entry in enumerate(entries, 1):
        lacking = KEYS - {"ends"} - set(entry)
        if lacking or set(entry) - KEYS or not str(entry.get("reason", "")).strip():
            wrong = sorted(lacking | (set(entry) - KEYS)) or ["reason"]
            sys.exit(f"{path}: entry {number} ({entry.get('fact', 'no fact')}): see {', '.join(wrong)}")
        entry["number"] = number
        entry.setdefault("ends", list(ENDS))
    return entries


def covers(entry, case, end):
    """Whether an entry is about this end of this case."""
    return end in entry["ends"] and any(fnmatchcase(case, pattern) for pattern in entry["cases"])


def judge(found, entries, cases):
    """Gives every difference its entry, and returns those without one and the entries that should have occurred and have
    not, each with case and end."""
    occurred = set()
    for one in found:
        for entry in entries:
            same = all(entry[key] == one[key] for key in ("fact", "perftest", "ours"))
            if same and covers(entry, one["case"], one["end"]):
                one["entry"], one["reason"] = entry["number"], entry["reason"]
                occurred.add((entry["number"], one["case"], one["end"]))
    stale = [(entry, case, end) for entry in entries for case in cases for end in ENDS
             if covers(entry, case, end) and (entry["number"], case, end) not in occurred]
    return [one for one in found if "entry" not in one], stale


def shown(found):
    """Every distinct difference once: both values, how many cases and ends have it, and its reason."""
    rows = {}
    for one in found:
        key = (one["fact"], one["perftest"], one["ours"], one.get("reason"))
        rows.setdefault(key, []).append(f"{one['case']} {one['end']}")
    lines = [f"{'fact':42} {'perftest':>30}   {'ours':30} cases"]
    for (fact, theirs, ours, reason), places in rows.items():
        lines.append(f"{fact:42} {theirs:>30}   {ours:30} {len(places)}")
        lines.append(f"    {reason}" if reason else "    NOT MEANT: " + "; ".join(places))
    return "\n".join(lines)
