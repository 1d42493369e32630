"""The oracle's probe: every case of an API we serve gives Kafka 4.4's answer or stands, with its reason, in tests/oracle/accepted.json."""
import collections, concurrent.futures, json, pathlib, random, string

import pytest
from cluster import ROOT, Cluster, probe

ORACLE = ROOT / "tests" / "oracle"
RECORDED = json.loads((ORACLE / "probe" / "answers-kafka-4.4.json").read_text())["cases"]
ACCEPTED = json.loads((ORACLE / "accepted.json").read_text())


def served(cluster):
    """Keys our brokers advertise, and those that Kafka 4.4 does."""
    keys = lambda answer: {k["ApiKey"] for k in answer["ApiKeys"]}
    ours = probe.Conn(next(iter(cluster.brokers.values())).address()).call("ApiVersions", 3, {"ClientSoftwareName": "probe", "ClientSoftwareVersion": "1"})
    kafkas = {int(k) for k in json.loads((ORACLE / "probe" / "layouts.json").read_text()) if k.isdigit()}
    return keys(ours), kafkas


def ask(brokers, names, jobs=6):
    """The normalised answer of each case, and the keys it called."""
    run, called = "p" + "".join(random.choices(string.ascii_lowercase, k=5)), collections.defaultdict(set)

    class Recording(probe.Conn):
        def send(self, api, v, obj, **kw):
            called[self.case].add(probe.BY_NAME[api] if isinstance(api, str) else api)
            return super().send(api, v, obj, **kw)

    class Ctx(probe.Ctx):
        def new(self, i=0, timeout=15):
            connection = Recording(self.brokers[i][1], timeout)
            connection.case = self.case
            self.conns[object()] = connection
            return connection

        def b(self, i=0):
            if i not in self.conns:
                self.conns[i] = Recording(self.brokers[i][1])
                self.conns[i].case = self.case
            return self.conns[i]

    def one(name):
        x = Ctx(brokers, run)
        x.case = name
        try:
            answer = probe.norm(probe.CASES[name][1](x), x)
        except Exception as error:  # noqa: BLE001  (as the probe itself: a case that cannot run says so)
            answer = f"case failed: {type(error).__name__}: {str(error)[:200]}"
        x.close()
        return name, answer

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = dict(pool.map(one, [n for n in names if n not in probe.ALONE]))
    answers.update(one(n) for n in names if n in probe.ALONE)
    return answers, called


def normal(answer):
    return json.loads(json.dumps(answer))


@pytest.fixture(scope="module")
def verdict():
    """Cases by outcome: agree, differ (name -> ours), waiting (key -> names)."""
    probe.load(str(ORACLE / "probe"))
    with Cluster(config={"broker.session.timeout.ms": 9000, "broker.heartbeat.interval.ms": 2000, "replica.lag.time.max.ms": 30000}) as c:
        ours, kafkas = served(c)
        brokers = probe.discover(c.bootstrap)
        answers, called = ask(brokers, list(probe.CASES))
        # A second look at what differed: some questions race with the cluster's own news.
        again = [n for n in answers if normal(answers[n]) != RECORDED.get(n, {}).get("answer") and n not in ACCEPTED and not waiting_for(called[n], ours, kafkas)]
        second, _ = ask(brokers, again, jobs=2)
        answers.update(second)
        assert all(b.alive() for b in c.brokers.values()), "no broker died of a question"
    agree, differ, waiting = [], {}, collections.defaultdict(list)
    for name, answer in answers.items():
        missing = waiting_for(called[name], ours, kafkas)
        if normal(answer) == RECORDED[name]["answer"]:
            agree.append(name)
        elif missing and name not in ACCEPTED:
            waiting[min(missing)].append(name)
        else:
            differ[name] = answer
    return agree, differ, waiting


def waiting_for(keys, ours, kafkas):
    return {k for k in keys if k in kafkas and k not in ours}


def test_every_case_agrees_or_is_listed(verdict, capsys):
    agree, differ, waiting = verdict
    names = {key: name for name, key in probe.BY_NAME.items()}
    with capsys.disabled():
        print(f"\nprobe: {len(agree)} cases agree with Kafka 4.4, {len([n for n in differ if n in ACCEPTED])} differ on purpose, "
              f"{sum(map(len, waiting.values()))} wait for their API ({', '.join(f'{names[k]} {len(v)}' for k, v in sorted(waiting.items()))})")
    unexplained = {n: {"ours": differ[n], "kafka": RECORDED[n]["answer"], "rule": RECORDED[n]["rule"]} for n in differ if n not in ACCEPTED}
    assert not unexplained, json.dumps(unexplained, indent=1)[:60000]


def test_no_listed_difference_is_gone(verdict):
    agree, differ, _ = verdict
    assert [n for n in ACCEPTED if n in agree] == []
    assert [n for n in ACCEPTED if n not in RECORDED] == []
