//! The command line from outside: exit codes and what stands on which stream.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

fn minikafka(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minikafka"))
        .args(words)
        .env_remove("MINIKAFKA_BOOTSTRAP")
        .stdin(Stdio::null())
        .output()
        .expect("the command runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn wrong_usage_is_2() {
    for words in [
        &["topic", "wander"][..],
        &["topic", "create"],
        &["topic", "create", "t", "--partitions", "three"],
        &["topic", "create", "t", "--partitions", "3", "--assignment", "1"],
        &["consume", "t", "--from", "middle"],
        &["consume", "t", "-f", "%q"],
        &["consume", "t", "--to", "beginning"],
        &["up", "--brokers", "0"],
        &["up", "-X", "nothing"],
        &["topic", "list", "--timeout", "soon"],
        &["topic", "list", "-b", "nowhere"],
        &["produce", "t", "--acks", "2"],
        &["produce", "t", "--acks", "1", "--idempotent"],
        &["topic", "list", "-X", "linger.msec=1"],
        &["broker"],
    ] {
        let output = minikafka(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{words:?}: talk belongs on standard error");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn an_unknown_client_key_is_answered_with_its_neighbour() {
    let output = minikafka(&["topic", "list", "-X", "linger.msec=1"]);
    assert!(stderr(&output).contains("did you mean linger.ms"), "{}", stderr(&output));
}

#[test]
fn nobody_there_is_4_and_names_the_address() {
    let address = format!("127.0.0.1:{}", free_port());
    for command in [
        &["topic", "list"][..],
        &["consume", "t"],
        &["produce", "t"],
        &["cluster", "info"],
        &["api-versions"],
    ] {
        let words: Vec<&str> = command.iter().copied().chain(["-b", &address, "--timeout", "2s"]).collect();
        let output = minikafka(&words);
        assert_eq!(output.status.code(), Some(4), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(&address), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn failures_are_json_where_answers_are() {
    let address = format!("127.0.0.1:{}", free_port());
    let output = minikafka(&["topic", "list", "-b", &address, "-o", "json"]);
    let error: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
    assert_eq!(error["error"]["code"], 4);
    assert_eq!(error["error"]["retriable"], true);
}

#[test]
fn somebody_who_does_not_speak_kafka_is_not_waited_for_long() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    // Takes connections, and never answers.
    let output = minikafka(&["topic", "list", "-b", &address, "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains(&address), "{}", stderr(&output));
}

#[test]
fn up_names_a_port_in_use_and_makes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (base, _held) = base_with_second_broker_port_taken();
    let output = minikafka(&["up", "--base-port", &base.to_string(), "--data-dir", &data.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains(&(base + 2).to_string()), "{}", stderr(&output));
    assert!(!data.join("broker-1").exists() && !data.join("minikafka-up.json").exists());
}

fn base_with_second_broker_port_taken() -> (u16, TcpListener) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if (1024..65_000).contains(&port) {
            return (port - 2, listener);
        }
    }
}

#[test]
fn up_names_every_bad_setting_and_makes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let words =
        ["up", "--data-dir", &data.to_string_lossy(), "-X", "min.insync.replica=2", "-X", "num.partitions=x"];
    let output = minikafka(&words);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("did you mean min.insync.replicas?"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("Invalid value x for configuration num.partitions"),
        "{}",
        stderr(&output)
    );
    assert_eq!(stderr(&output).matches("num.partitions").count(), 1, "once, not once per node");
    assert!(!data.exists());
}

#[test]
fn up_touches_nothing_of_somebody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let cat = folder.path().join("cat.jpg");
    std::fs::write(&cat, "a cat").expect("written");
    let output = minikafka(&["up", "--fresh", "--data-dir", &folder.path().to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cat.jpg"), "{}", stderr(&output));
    assert!(cat.exists());
}
