"""The controllers' majority is gone: metadata stands still, writes that need an ISR change time out and never hear 19; and everything comes back."""
import time

import clients
from cluster import LAB, Cluster, eventually, probe

SESSION = LAB["broker.session.timeout.ms"] / 1000


def test_two_of_three_combined_nodes_killed(topic):
    with Cluster("--combined") as c:
        c.create(topic, [[1, 2, 3], [2, 3, 1]], min_insync_replicas=2)
        assert clients.Raw(c.brokers[1]).produce(topic, b"a")[0] == 0
        before = c.partition(topic, 0, 1), c.partition(topic, 1, 1)
        c.brokers[2].kill()
        c.brokers[3].kill()
        writer = clients.Writer(c.brokers[1], topic, timeout=500)
        eventually("writes have timed out for three sessions", lambda: writer.seen and writer.seen[-1][0] > 3 * SESSION, 3 * SESSION + 10)
        codes = writer.end() and set(writer.codes())
        assert codes == {7}, codes
        assert (c.partition(topic, 0, 1), c.partition(topic, 1, 1)) == before, "ISR, leaders and epochs stand still"
        assert clients.Raw(c.brokers[1]).produce(topic, b"acks=1", acks=1)[0] == 0
        answer = probe.Conn(c.brokers[1].address(), 30).call("CreateTopics", 7, {"Topics": [{"Name": topic + "-never", "NumPartitions": 1, "ReplicationFactor": 1,
                                                             "Assignments": [], "Configs": []}], "timeoutMs": 2000})
        assert answer["Topics"][0]["ErrorCode"] == 7 or answer["Topics"][0]["ErrorCode"] == 41, answer
        assert topic + "-never" not in [t["Name"] for t in c.metadata(at=1)["Topics"]]


def test_a_leader_cut_off_keeps_its_client_but_acknowledges_nothing(topic):
    """Broker 1 is cut from controllers and peers, not from its client: no acks=all success, and its acks=1 tail is truncated on return."""
    with Cluster(config={"minikafka.lab.faults.enable": "true"}) as c:
        c.create(topic, [[1, 2, 3]], min_insync_replicas=2)
        clients.produce_all(c.bootstrap, topic, [b"kept %d" % n for n in range(20)], acks="all")
        # Cut both ways: broker 1's own outgoing traffic at broker 1, and what its followers fetch from it at the followers.
        cut = [c.brokers[1].post("/v1/faults", {"kind": kind, "peer": "*", "direction": "both", "action": "drop", "for_ms": 60000})
               for kind in ("heartbeats", "isr", "metadata", "replication")]
        assert cut
        for b in (2, 3):
            c.brokers[b].post("/v1/faults", {"kind": "replication", "peer": "1", "direction": "both", "action": "drop", "for_ms": 60000})
        writer = clients.Writer(c.brokers[1], topic, timeout=500)
        eventually("another broker leads", lambda: c.partition(topic, at=2)["leader"] == 2, SESSION * 2 + 5)
        for n in range(10):
            assert clients.Raw(c.brokers[1]).produce(topic, b"lost %d" % n, acks=1)[0] == 0, "a leader that knows no better takes acks=1"
        clients.produce_all(c.brokers[2].kafka, topic, [b"new %d" % n for n in range(20)], acks="all")
        codes = writer.end() and writer.codes()
        assert 0 not in codes[2:], "no acks=all success on the deposed leader"
        assert 7 in codes
        for b in (1, 2, 3):
            c.brokers[b].post("/v1/faults", {}, "DELETE")
        eventually("broker 1 follows, whole again", lambda: c.partition(topic, at=2)["isr"] == [1, 2, 3], SESSION * 2 + 15)
        values = [v for _, v in clients.read_all(c.bootstrap, topic)]
        assert [v for v in values if v.startswith(b"kept")] == [b"kept %d" % n for n in range(20)]
        assert [v for v in values if v.startswith(b"new")] == [b"new %d" % n for n in range(20)]
        assert not [v for v in values if v.startswith(b"lost")]
        assert any(e["kind"] == "truncation" for e in c.kinds(c.brokers[1])), "the truncation is told"


def test_an_alive_but_slow_follower(topic):
    """Fetching stopped by the fault hook: shrunk after 1.0-1.5 lag times, never fenced, expanded after healing."""
    lag = LAB["replica.lag.time.max.ms"] / 1000
    with Cluster(config={"minikafka.lab.faults.enable": "true"}) as c:
        c.create(topic, [[1, 2, 3]], min_insync_replicas=2)
        writer = clients.Writer(c.brokers[1], topic, timeout=int(lag * 4000), pause=0.02)
        eventually("writes flow", lambda: writer.codes().count(0) > 5, 10)
        c.brokers[3].post("/v1/faults", {"kind": "fetching", "action": "stop", "for_ms": 120000})
        stopped = time.monotonic()
        eventually("the slow one left the ISR", lambda: c.partition(topic, at=1)["isr"] == [1, 2], lag * 1.5 + 5)
        took = time.monotonic() - stopped
        assert lag * 1.0 - 0.6 <= took <= lag * 1.5 + 1.0, f"shrunk after {took:.2f} s with a lag limit of {lag} s"
        assert 3 in [b["NodeId"] for b in c.metadata(at=1)["Brokers"]], "alive: never fenced"
        assert set(writer.end() and writer.codes()) == {0}, "writes waited and succeeded"
        assert "Shrinking ISR" in c.brokers[1].log()
        c.brokers[3].post("/v1/faults", {}, "DELETE")
        eventually("back in the ISR", lambda: c.partition(topic, at=1)["isr"] == [1, 2, 3], 10)
        assert "Expanding ISR" in c.brokers[1].log()


def test_kill_of_everything_and_restart(topic):
    """kill -9 of all processes, then `up` again on the same directory: every acknowledged record is read back."""
    with Cluster() as c:
        c.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
        written = {}
        for p in range(3):
            values = [b"%d-%d" % (p, n) for n in range(1000)]
            outcomes = clients.produce_all(c.bootstrap, topic, values, partition=p, acks="all", enable_idempotence=True)
            assert [o for o in outcomes if o[1]] == []
            written[p] = values
        for node in c.nodes:
            node.signal(9)
        for node in c.nodes:
            node.gone()
        c.supervisor.kill()
        c.supervisor.wait()
        c.events.clear()
        c.up()
        assert c.ready_after < SESSION + 4 + 2, f"ready after {c.ready_after:.1f} s: session timeout + 4 s, and 2 s of slack"
        for p, values in written.items():
            assert [v for _, v in clients.read_all(c.bootstrap, topic, p)] == values
        outcomes = clients.produce_all(c.bootstrap, topic, [b"after"], acks="all")
        assert outcomes[0][1] is None
