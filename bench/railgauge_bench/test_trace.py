"""Tests of what is made of traces, and of the list of meant differences: `python3 -m unittest railgauge_bench.test_trace`
in the folder above. The lines are those of a run on Soft-RoCE, shortened."""
import json
import tempfile
import unittest
from pathlib import Path

from .parity import compare, judge, read_list, shown
from .trace import facts

CAP = {"max_send_wr": 128, "max_recv_wr": 1, "max_send_sge": 1, "max_recv_sge": 1, "max_inline_data": 0}


def calls(number, peer, psn, peer_psn, rkey, peer_rkey, sends=True, **changed):
    """One end of a run that writes 256 messages, as lines. `changed` are attributes of the transition to RTS."""
    lines = [
        {"call": "begin", "program": "killed before", "pid": 1},
        {"call": "ibv_open_device", "device": "another"},
        {"call": "begin", "program": "ib_write_bw", "pid": 2},
        {"call": "ibv_open_device", "device": "rxe0"},
        {"call": "ibv_alloc_pd"},
        {"call": "ibv_reg_mr_iova2", "length": 8192, "access": ["LOCAL_WRITE", "REMOTE_WRITE"], "rkey": rkey},
        {"call": "ibv_create_cq", "cq": "cq1", "cqe": 128, "channel": None, "comp_vector": 0, "made": True},
        {"call": "ibv_create_qp", "qp_num": number, "qp_type": "RC", "cap": CAP, "sq_sig_all": 0, "srq": False,
         "send_cq": "cq1", "recv_cq": "cq1"},
        {"call": "ibv_modify_qp", "qp_num": number, "mask": 57, "rc": 0, "attributes": {
            "qp_state": "INIT", "pkey_index": 0, "port_num": 1, "qp_access_flags": ["REMOTE_WRITE"]}},
        {"call": "ibv_modify_qp", "qp_num": number, "mask": 1216897, "rc": 0, "attributes": {
            "qp_state": "RTR", "dest_qp_num": peer, "rq_psn": peer_psn, "ah_attr": {"sgid_index": 1, "hop_limit": 255}}},
        {"call": "ibv_modify_qp", "qp_num": number, "mask": 77313, "rc": 0, "attributes": {
            "qp_state": "RTS", "sq_psn": psn, "retry_cnt": 7, **changed}},
    ]
    if sends:
        shape = {"opcode": "RDMA_WRITE", "num_sge": 1, "length": 1024, "imm": False, "operands": None}
        lines.append({"call": "posts", "qp_num": number, "api": "ibv_post_send", "sends": [
            {**shape, "send_flags": [], "count": 248}, {**shape, "send_flags": ["SIGNALED"], "count": 8}],
            "lists": {"1": 256}, "intervals": {"32": 8}, "local_steps": {"1024": 192, "-3072": 63},
            "remote_steps": {"1024": 192, "-3072": 63}, "rkeys": [peer_rkey], "datagrams": [], "most_in_flight": 128,
            "unsignaled_at_end": 0, "receives": [], "receive_lists": {}, "most_receives": 0, "first_receives": 0})
    lines.append({"call": "ibv_destroy_qp", "qp_num": number})
    lines.append({"call": "completions", "cq": "cq1", "poll_entries": {"16": 900}, "notify": {}, "acknowledged": {},
                  "events": 0, "failed": {}})
    return lines


def text(lines):
    return "\n".join(map(json.dumps, lines))


FAR = text(calls(18, 17, 400, 300, 8, 7, sends=False))


class Normalised(unittest.TestCase):
    def test_numbers_of_a_run_make_no_difference(self):
        first = facts(text(calls(17, 18, 300, 400, 7, 8)), FAR)
        second = facts(text(calls(99, 98, 5, 6, 3, 4)), text(calls(98, 99, 6, 5, 4, 3, sends=False)))
        self.assertEqual(list(compare("case", "near", first, second)), [])
        self.assertEqual(first["devices opened"], "rxe0", "of the last process only")
        self.assertEqual(first["send.requests per completion"], "32")
        self.assertEqual(first["send.steps through memory"], "-3072 1024")

    def test_numbers_that_do_not_belong_together_are_seen(self):
        wrong = facts(text(calls(17, 19, 300, 401, 7, 8)), FAR)
        self.assertEqual(wrong["RTR.dest_qp_num"], "another queue pair's")
        self.assertEqual(wrong["RTR.rq_psn"], "not the peer's sq_psn")
        self.assertEqual(facts(FAR, text(calls(17, 18, 300, 400, 7, 9)))["memory.registration the peer uses"],
                         "another region")

    def test_an_attribute_and_a_bit_of_the_mask_are_differences(self):
        theirs = facts(text(calls(17, 18, 300, 400, 7, 8)), FAR)
        ours = facts(text(calls(17, 18, 300, 400, 7, 8, retry_cnt=6, timeout=14)), FAR)
        self.assertEqual([(one["fact"], one["perftest"], one["ours"]) for one in compare("case", "near", theirs, ours)],
                         [("RTS.retry_cnt", "7", "6"), ("RTS.timeout", "-", "14")])

    def test_a_state_that_only_one_comes_to_is_one_difference(self):
        stays = [line for line in calls(18, 17, 400, 300, 8, 7, sends=False)
                 if line.get("attributes", {}).get("qp_state") != "RTS"]
        near = text(calls(17, 18, 300, 400, 7, 8))
        found = list(compare("case", "far", facts(text(stays), near), facts(FAR, near)))
        self.assertEqual([(one["fact"], one["perftest"], one["ours"]) for one in found],
                         [("transitions", "INIT RTR", "INIT RTR RTS")])

    def test_a_second_queue_pair_and_a_second_registration_are_told(self):
        lines = calls(17, 18, 300, 400, 7, 8)
        region = {"call": "ibv_reg_mr", "length": 8192, "access": ["LOCAL_WRITE"], "rkey": 70}
        probe = {**lines[7], "qp_num": 16}
        more = facts(text([*lines[:6], region, lines[6], probe, {"call": "ibv_destroy_qp", "qp_num": 16}, *lines[7:]]), FAR)
        self.assertEqual(more["memory.registrations of the buffer"], "2")
        self.assertEqual(more["other queue pairs"], "RC never joined")

    def test_a_refused_transition_is_told(self):
        lines = calls(17, 18, 300, 400, 7, 8)
        lines[10]["rc"] = 22
        self.assertEqual(facts(text(lines), FAR)["RTS.refused"], "22")

    def test_a_program_that_joins_nothing_is_told(self):
        self.assertEqual(facts(text(calls(17, 18, 300, 400, 7, 8)[:8]), FAR),
                         {"measured queue pair": "none reaches RTR"})


class Judged(unittest.TestCase):
    FOUND = {"case": "write rc poll latency", "end": "near", "fact": "RTS.retry_cnt", "perftest": "7", "ours": "6"}

    def entries(self, **changed):
        entry = {"cases": ["* rc *"], "fact": "RTS.retry_cnt", "perftest": "7", "ours": "6", "reason": "r", **changed}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "list.toml")
            path.write_text("[[difference]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()))
            return read_list(path)

    def judged(self, found, entries):
        unmeant, stale = judge(found, entries, ["write rc poll latency"])
        return len(unmeant), [(case, end) for _, case, end in stale]

    def test_a_meant_difference_passes_and_is_shown_with_its_reason(self):
        found = [dict(self.FOUND), {**self.FOUND, "end": "far"}]
        self.assertEqual(self.judged(found, self.entries()), (0, []))
        self.assertIn("    r", shown(found))

    def test_another_value_is_not_meant_and_leaves_its_entry_stale(self):
        for changed in ({"ours": "5"}, {"perftest": "6"}, {"fact": "RTS.rnr_retry"}):
            found = [{**self.FOUND, **changed}]
            self.assertEqual(self.judged(found, self.entries(ends=["near"])), (1, [("write rc poll latency", "near")]))
            self.assertIn("NOT MEANT", shown(found))

    def test_what_no_longer_occurs_at_one_end_is_stale_there(self):
        self.assertEqual(self.judged([dict(self.FOUND)], self.entries()), (0, [("write rc poll latency", "far")]))

    def test_an_entry_covers_its_cases_only(self):
        self.assertEqual(self.judged([dict(self.FOUND)], self.entries(cases=["* uc *"])), (1, []))

    def test_an_entry_without_a_reason_is_refused(self):
        with self.assertRaises(SystemExit):
            self.entries(reason=" ")
        with self.assertRaises(SystemExit):
            self.entries(because="x")


if __name__ == "__main__":
    unittest.main()
