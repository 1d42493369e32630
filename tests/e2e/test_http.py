"""HTTP of every node: health, state, events; and the fault hook is absent unless it was asked for."""
import urllib.error, urllib.request

import clients
import pytest
from cluster import Cluster, eventually


def test_health_of_every_node(c):
    for node in c.nodes:
        for path in ("/health/live", "/health/ready"):
            with urllib.request.urlopen(f"http://{node.http}{path}", timeout=2) as answer:
                assert answer.status == 200


def test_state_of_a_leader_and_of_its_followers(c, topic):
    c.create(topic, [[1, 2, 3]])
    clients.produce_all(c.bootstrap, topic, [b"%d" % n for n in range(10)], acks="all")
    leader = c.state(topic, 0, 1)
    assert leader["role"] == "leader" and leader["log_end_offset"] == 10 and leader["high_watermark"] == 10 and sorted(leader["isr"]) == [1, 2, 3]
    assert sorted(f["broker"] for f in leader["followers"]) == [2, 3]
    assert all(f["log_end_offset"] == 10 and f["caught_up_ms_ago"] >= 0 for f in leader["followers"])
    follower = eventually("the follower knows the high watermark", lambda: (lambda s: s["high_watermark"] == 10 and s)(c.state(topic, 0, 2)), 3)
    assert follower["role"] == "follower" and follower["leader_epoch"] == leader["leader_epoch"]


def test_raft_state_of_controllers(c):
    states = [n.get("/v1/state")["raft"] for n in c.controllers.values()]
    assert len({s["leader"] for s in states}) == 1 and [s["role"] for s in states].count("leader") == 1
    assert len({s["term"] for s in states}) == 1


def test_events_are_typed(c):
    events = [e for n in c.nodes for e in c.kinds(n)]
    assert events and all({"seq", "kind", "text"} <= e.keys() for e in events), events[:2]


def test_no_fault_hook_without_asking(c):
    with pytest.raises(urllib.error.HTTPError) as error:
        c.brokers[1].post("/v1/faults", {"kind": "fetching", "action": "stop", "for_ms": 1000})
    assert error.value.code == 404


def test_faults_bite_are_listed_and_expire(topic):
    with Cluster(config={"minikafka.lab.faults.enable": "true"}) as c:
        c.create(topic, [[1, 2, 3]], min_insync_replicas=1)
        c.brokers[2].post("/v1/faults", {"kind": "fetching", "action": "stop", "for_ms": 2500})
        listed = c.brokers[2].get("/v1/faults")["faults"]
        assert len(listed) == 1 and listed[0]["expires_in_ms"] <= 2500
        clients.Raw(c.brokers[1]).produce(topic, b"x", acks=1)
        eventually("it bites: broker 2 lags", lambda: c.state(topic, 0, 3)["log_end_offset"] == 1 and c.state(topic, 0, 2)["log_end_offset"] == 0, 2)
        eventually("it expires by itself", lambda: c.brokers[2].get("/v1/faults")["faults"] == [] and c.state(topic, 0, 2)["log_end_offset"] == 1, 6)
