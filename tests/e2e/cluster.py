"""A minikafka cluster as real processes: starts it with `minikafka up --json`, kills, stops, pauses and restarts its nodes.

Nothing here sleeps for a fixed time: every wait names the condition it waits for and fails with what was seen last."""
import contextlib, json, os, pathlib, queue, random, signal, socket, subprocess, sys, tempfile, threading, time, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("MINIKAFKA_BIN", ROOT / "target" / "release" / "minikafka"))
sys.path.insert(0, str(ROOT / "tests" / "oracle" / "probe"))
import probe  # noqa: E402  (raw Kafka requests: probe.Conn)

# Timers of the lab: the same shape as Kafka's defaults, about six times faster.
LAB = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300, "replica.lag.time.max.ms": 2000,
       "replica.high.watermark.checkpoint.interval.ms": 1000}


def eventually(what, condition, within, every=0.05):
    """The first true value of condition(); fails after `within` seconds, naming `what` and the last value or error."""
    end, last = time.monotonic() + within, None
    while True:
        try:
            last = condition()
            if last:
                return last
        except (OSError, ValueError, KeyError, AssertionError) as error:
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() > end:
            raise AssertionError(f"not within {within} s: {what}; last seen: {last}")
        time.sleep(every)  # the pace of asking, not a wait for luck


def free_base():
    """A base port whose ranges (P+2i, P+100+i, P+200+i, P+300+i) are free and below the ephemeral ports."""
    for _ in range(200):
        base = random.randrange(12000, 31000, 400)
        ports = [base + 2 * i for i in range(3)] + [base + o + i for o in (100, 200, 300) for i in range(3)]
        with contextlib.ExitStack() as stack:
            try:
                for port in ports:
                    s = stack.enter_context(socket.socket())
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.bind(("127.0.0.1", port))
                return base
            except OSError:
                continue
    raise AssertionError("no free range of ports found")


class Node:
    """One process of the cluster."""

    def __init__(self, cluster, facts):
        self.cluster, self.facts = cluster, facts
        self.role, self.id, self.pid = facts["role"], facts["id"], facts["pid"]
        self.http = facts.get("http")
        self.kafka = facts.get("kafka")
        self.data = pathlib.Path(facts["data"])
        self.config = facts["config"]
        self.child = None  # set once the test restarted it by itself

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.gone()

    def stop(self, within=30):
        """SIGTERM: a controlled shutdown; returns the seconds it took."""
        begun = time.monotonic()
        self.signal(signal.SIGTERM)
        self.gone(within)
        return time.monotonic() - begun

    def pause(self):
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)

    def alive(self):
        if self.child:
            return self.child.poll() is None
        try:
            with open(f"/proc/{self.pid}/stat") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def gone(self, within=15):
        eventually(f"{self} has ended", lambda: not self.alive(), within)

    def start(self):
        """Start it again from its own configuration, as a user would by hand."""
        assert not self.alive(), f"{self} still runs"
        log = open(self.data / "restarts.log", "ab")
        self.child = subprocess.Popen([BINARY, self.role, "--config", self.config, *self.cluster.overrides],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.pid = self.child.pid

    def get(self, path, timeout=2):
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=timeout) as answer:
            return json.loads(answer.read())

    def post(self, path, body, method="POST"):
        request = urllib.request.Request(f"http://{self.http}{path}", json.dumps(body).encode(), {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=2) as answer:
            return json.loads(answer.read() or b"null")

    def ready(self, within=30):
        def condition():
            with urllib.request.urlopen(f"http://{self.http}/health/ready", timeout=2) as answer:
                return answer.status == 200
        eventually(f"{self} is ready", condition, within)

    def address(self):
        host, port = self.kafka.rsplit(":", 1)
        return host, int(port)

    def log(self):
        texts = [p.read_text(errors="replace") for p in (self.data / "server.log", self.data / "restarts.log") if p.exists()]
        return "\n".join(texts)

    def __repr__(self):
        return f"{self.role} {self.id}"


class Cluster:
    """`with Cluster(...) as c`: c.brokers[1], c.controllers[101], c.bootstrap."""

    def __init__(self, *flags, config=None, data=None, base=None, within=40):
        self.config = {**LAB, **(config or {})}
        self.directory = tempfile.TemporaryDirectory(prefix="minikafka-e2e-") if data is None else None
        self.data = pathlib.Path(data or self.directory.name) / ("data" if data is None else "")
        self.base = base or free_base()
        self.flags, self.within = list(flags), within
        self.overrides = [word for key, value in self.config.items() for word in ("-X", f"{key}={value}")]
        self.events, self.lines = [], queue.Queue()
        self.supervisor = None

    def __enter__(self):
        self.up()
        return self

    def up(self):
        begun = time.monotonic()
        self.supervisor = subprocess.Popen([BINARY, "up", "--json", "--base-port", str(self.base), "--data-dir", str(self.data), *self.flags, *self.overrides],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.talk = []
        threading.Thread(target=self._listen, args=(self.supervisor,), daemon=True).start()
        threading.Thread(target=lambda p: self.talk.extend(p.stderr), args=(self.supervisor,), daemon=True).start()
        ready = self.event("ready", self.within)
        self.ready_after = time.monotonic() - begun
        nodes = [Node(self, facts) for facts in ready["processes"]]
        self.nodes = nodes
        self.brokers = {n.id: n for n in nodes if n.kafka}
        self.controllers = {n.id: n for n in nodes if n.role == "controller"}
        self.bootstrap = ",".join(n.kafka for n in self.brokers.values())

    def _listen(self, process):
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                self.events.append(event)
                self.lines.put(event)

    def event(self, name, within):
        def condition():
            if self.supervisor.poll() is not None:
                raise SystemError(f"`up` ended with {self.supervisor.returncode}: {''.join(self.talk)} {self.events}")
            return next((e for e in reversed(self.events) if e.get("event") == name), None)
        return eventually(f"event {name} of `up`", condition, within)

    def __exit__(self, *failure):
        self.close()

    def close(self):
        for node in getattr(self, "nodes", []):
            if node.alive():
                node.go_on()
            if node.child and node.alive():
                node.signal(signal.SIGKILL)
                node.child.wait()
        if self.supervisor and self.supervisor.poll() is None:
            self.supervisor.send_signal(signal.SIGINT)
            try:
                self.supervisor.wait(45)
            except subprocess.TimeoutExpired:
                self.supervisor.kill()
                self.supervisor.wait()
        if self.directory:
            keep = os.environ.get("MINIKAFKA_KEEP")
            if keep and sys.exc_info()[0]:
                os.rename(self.directory.name, keep)
            with contextlib.suppress(FileNotFoundError):
                self.directory.cleanup()

    # What the wire says ------------------------------------------------------------------------------------------------

    def metadata(self, topic=None, at=None):
        node = self.brokers[at] if at else next(b for b in self.brokers.values() if b.alive())
        connection = probe.Conn(node.address(), 5)
        try:
            answer = connection.call("Metadata", 12, {"Topics": None if topic is None else [{"Name": topic}], "AllowAutoTopicCreation": False})
        finally:
            connection.s.close()
        assert not isinstance(answer, str), answer
        return answer

    def partition(self, topic, partition=0, at=None):
        """Leader, epoch, replicas and ISR of a partition, as Metadata of one broker tells."""
        facts = self.metadata(topic, at)["Topics"][0]
        assert not facts["ErrorCode"], facts
        p = next(p for p in facts["Partitions"] if p["PartitionIndex"] == partition)
        return {"leader": p["LeaderId"], "epoch": p["LeaderEpoch"], "replicas": p["ReplicaNodes"], "isr": sorted(p["IsrNodes"]), "error": p["ErrorCode"]}

    def create(self, topic, assignment, **config):
        """A topic with the given replicas per partition, known to every living broker and led."""
        node = next(b for b in self.brokers.values() if b.alive())
        connection = probe.Conn(node.address(), 30)
        answer = connection.call("CreateTopics", 7, {"Topics": [{"Name": topic, "NumPartitions": -1, "ReplicationFactor": -1,
                                 "Assignments": [{"PartitionIndex": p, "BrokerIds": ids} for p, ids in enumerate(assignment)],
                                 "Configs": [{"Name": k.replace("_", "."), "Value": str(v)} for k, v in config.items()]}], "timeoutMs": 10000})
        connection.s.close()
        assert not isinstance(answer, str) and not answer["Topics"][0]["ErrorCode"], answer
        for node in self.brokers.values():
            if node.alive():
                eventually(f"{topic} is led, says {node}", lambda: all(self.partition(topic, p, node.id)["leader"] >= 0 for p in range(len(assignment))), 10)
        return topic

    def state(self, topic, partition, at):
        """What /v1/state of a broker says of one of its replicas, or None."""
        replicas = self.brokers[at].get("/v1/state")["replicas"]
        return next((r for r in replicas if r["topic"] == topic and r["partition"] == partition), None)

    def kinds(self, node):
        """The typed events of a node."""
        return node.get("/v1/events")["events"]
