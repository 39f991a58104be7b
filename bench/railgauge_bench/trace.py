"""What a trace of verbs calls comes to: facts by name that two programs can be compared by.

A trace is what `agent/examples/verbs_trace` writes at one end. Values that must differ between two runs are said by what
they refer to: a queue pair number is the peer's or another's, a first packet sequence number is the peer's own. The
measured queue pair is the first one that is brought to RTR.
"""
import json


def last_process(text):
    """The lines of the last process that has written to a trace."""
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    begun = [number for number, line in enumerate(lines) if line["call"] == "begin"]
    return lines[begun[-1] + 1:] if begun else lines


class QueuePair:
    """A queue pair from its creation to its end."""

    def __init__(self, created):
        self.created, self.number = created, created["qp_num"]
        self.transitions, self.posts, self.asked = [], None, []

    def states(self):
        return [step["attributes"]["qp_state"] for step in self.transitions if "qp_state" in step["attributes"]]

    def attribute(self, state, name):
        """The value that the transition to `state` gave an attribute."""
        for step in self.transitions:
            if step["attributes"].get("qp_state") == state and name in step["attributes"]:
                return step["attributes"][name]
        return None


class Trace:
    """The calls of one process."""

    def __init__(self, lines):
        self.lines = lines
        self.queue_pairs, alive = [], {}
        for line in lines:
            call, number = line["call"], line.get("qp_num")
            if call.startswith("ibv_create_qp") and number is not None:
                alive[number] = QueuePair(line)
                self.queue_pairs.append(alive[number])
            elif call == "ibv_modify_qp" and number in alive:
                alive[number].transitions.append(line)
            elif call == "ibv_query_qp_data_in_order" and number in alive:
                alive[number].asked.append(line)
            elif call == "posts" and number in alive:
                alive[number].posts = line

    def of(self, *calls):
        return [line for line in self.lines if line["call"] in calls]

    def measured(self):
        """The first queue pair that was brought to RTR, or None: one that only receives may stay there."""
        return next((pair for pair in self.queue_pairs if "RTR" in pair.states()), None)


def facts(text, peer):
    """The facts of the trace `text` by name, all of them words; `peer` is the trace of the other end."""
    trace, other = Trace(last_process(text)), Trace(last_process(peer))
    pair, theirs = trace.measured(), other.measured()
    if pair is None or theirs is None:
        return {"measured queue pair": "none reaches RTR"}
    return {name: words(value) for name, value in [
        *general(trace, pair), *memory(trace, theirs), *created(trace, pair), *transitions(pair, theirs),
        *addresses(trace), *posts(pair, theirs, other), *completions(trace, pair)]}


def words(value):
    """Any value as words."""
    if isinstance(value, (list, tuple)):
        return " ".join(str(part) for part in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def general(trace, pair):
    yield "devices opened", sorted(line["device"] for line in trace.of("ibv_open_device"))
    yield "protection domains", len(trace.of("ibv_alloc_pd"))
    rest = [other for other in trace.queue_pairs if other is not pair]
    joined = [f"{other.created['qp_type']} joined" for other in rest if "RTR" in other.states()]
    idle = [f"{other.created['qp_type']} never joined" for other in rest if "RTR" not in other.states()]
    yield "other queue pairs", ", ".join(joined + idle) or "none"
    asked = [f"{line['opcode']} in {line['state']}" for other in trace.queue_pairs for line in other.asked]
    yield "order of bytes asked", ", ".join(dict.fromkeys(asked)) or "never"


def memory(trace, theirs):
    """The buffer is the longest region: what else is registered carries no payload."""
    regions = trace.of("ibv_reg_mr", "ibv_reg_mr_iova2", "ibv_reg_dmabuf_mr")
    longest = max((region["length"] for region in regions), default=0)
    buffer = [region for region in regions if region["length"] == longest]
    yield "memory.registrations of the buffer", len(buffer)
    yield "memory.other regions", len(regions) - len(buffer)
    yield "memory.length", longest
    for number, region in enumerate(buffer, 1):
        yield f"memory.{number}.access", region["access"]
    used = set(theirs.posts["rkeys"]) if theirs.posts else set()
    # The peer writes and reads by these keys.
    named = [number for number, region in enumerate(buffer, 1) if region["rkey"] in used]
    if used:
        yield "memory.registration the peer uses", named or "another region"


def created(trace, pair):
    line = pair.created
    yield "create.call", line["call"]
    yield "create.qp_type", line["qp_type"]
    yield "create.sq_sig_all", line["sq_sig_all"]
    yield "create.srq", line["srq"]
    for name, value in line["cap"].items():
        yield f"create.{name}", value
    yield "create.one completion queue", line["send_cq"] == line["recv_cq"]
    queues = {queue["cq"]: queue for queue in trace.of("ibv_create_cq")}
    for end in ("send", "recv"):
        queue = queues.get(line[f"{end}_cq"])
        if queue:
            yield f"{end}_cq.cqe", queue["cqe"]
            yield f"{end}_cq.channel", queue["channel"] is not None
            yield f"{end}_cq.comp_vector", queue["comp_vector"]


def transitions(pair, theirs):
    yield "transitions", pair.states()
    for step in pair.transitions:
        attributes = dict(step["attributes"])
        state = attributes.pop("qp_state", "same state")
        if step["rc"] != 0:
            yield f"{state}.refused", step["rc"]
        # An end that only receives need not go to RTS, where the other's rq_psn comes from.
        first = theirs.attribute("RTS", "sq_psn")
        for name, value in attributes.items():
            if name == "dest_qp_num":
                value = "the peer's" if value == theirs.number else "another queue pair's"
            elif name == "rq_psn":
                value = "not the peer's sq_psn" if first not in (None, value) else "a number"
            elif name == "sq_psn":
                value = "a number"
            if isinstance(value, dict):
                yield from ((f"{state}.{name}.{part}", inner) for part, inner in value.items())
            else:
                yield f"{state}.{name}", value


def addresses(trace):
    handles = trace.of("ibv_create_ah")
    yield "address handles", len(handles)
    for line in handles[:1]:
        yield from ((f"create_ah.{name}", value) for name, value in line["ah_attr"].items())


def numbers(histogram):
    """The distinct values of a histogram in their order."""
    return sorted(int(value) for value in histogram if value != "more") + ["more"] * ("more" in histogram)


def posts(pair, theirs, other):
    done = pair.posts
    sends = done["sends"] if done else []
    yield "sends", bool(sends)
    if sends:
        yield "send.api", done["api"]
        for name in ("opcode", "num_sge", "length", "imm", "operands"):
            yield f"send.{name}", ", ".join(dict.fromkeys(words(shape[name]) for shape in sends))
        # Whether a request completes is told by the intervals.
        flags = [[flag for flag in shape["send_flags"] if flag != "SIGNALED"] for shape in sends]
        yield "send.flags", ", ".join(dict.fromkeys(words(one) for one in flags))
        yield "send.requests per call", numbers(done["lists"])
        yield "send.requests per completion", numbers(done["intervals"])
        yield "send.last request completes", done["unsignaled_at_end"] == 0
        # How many a program has seen to complete depends on when it looks, unless they complete at equal intervals.
        yield "send.most in flight", done["most_in_flight"] if len(done["intervals"]) == 1 else "varies"
        yield "send.steps through memory", numbers(done["local_steps"])
        if done["rkeys"]:
            yield "send.steps through the peer's memory", numbers(done["remote_steps"])
        for number, key in done["datagrams"]:
            yield "send.datagram to", "the peer" if number == theirs.number else "another queue pair"
            yield "send.datagram qkey", "the peer's" if key == theirs.attribute("INIT", "qkey") else "another"
    receives = done["receives"] if done else []
    yield "receives", bool(receives)
    if receives:
        for name in ("num_sge", "length"):
            yield f"receive.{name}", ", ".join(dict.fromkeys(words(shape[name]) for shape in receives))
        yield "receive.requests per call", numbers(done["receive_lists"])
        yield "receive.most posted", done["most_receives"]
        yield "receive.posted before the first message", done["first_receives"]


def completions(trace, pair):
    queues = {line["cq"]: line for line in trace.of("completions")}
    for end in ("send", "recv"):
        line = queues.get(pair.created[f"{end}_cq"])
        line = line or {"poll_entries": {}, "failed": {}, "notify": {}, "events": 0, "acknowledged": {}}
        yield f"{end}_cq.entries per poll", numbers(line["poll_entries"])
        yield f"{end}_cq.failed completions", numbers(line["failed"])
        yield f"{end}_cq.armed for", ["solicited" if only else "all" for only in numbers(line["notify"])] or "nothing"
        yield f"{end}_cq.events", bool(line["events"])
        yield f"{end}_cq.events per acknowledgement", numbers(line["acknowledged"])
