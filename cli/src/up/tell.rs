//! What `up` says: lines for people, or one JSON object a line.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::layout::{HOST, NodePlan, Shape};

/// One process as `--json` lists it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Process {
    role: &'static str,
    id: u16,
    pid: u32,
    /// `host:port` for Kafka clients.
    kafka: Option<String>,
    /// `host:port` for controllers and brokers that follow the metadata.
    controller: Option<String>,
    /// `host:port` of the HTTP server.
    http: String,
    /// Folder of partitions and `server.log`.
    data: String,
    config: String,
    log: String,
}

impl Process {
    pub(crate) fn new(node: &NodePlan, pid: u32) -> Process {
        let at = |port: u16| format!("{HOST}:{port}");
        Process {
            role: node.role.name(),
            id: node.id,
            pid,
            kafka: node.kafka.map(at),
            controller: node.controller.map(at),
            http: at(node.http),
            data: node.data.display().to_string(),
            config: node.config.display().to_string(),
            log: node.log().display().to_string(),
        }
    }
}

/// Something worth saying.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum News<'a> {
    /// All processes are started.
    Starting { cluster_id: &'a str, shape: Shape, data: &'a Path, processes: &'a [Process] },
    /// A node is not ready, and says why.
    Waiting { role: &'static str, id: u16, because: &'a [String] },
    /// Every node is ready.
    Ready { ready_ms: u64, bootstrap: &'a str, data: &'a Path, processes: &'a [Process] },
    /// A process has ended without having been asked to.
    Ended { role: &'static str, id: u16, pid: u32, how: &'a str, log: &'a [String], restart: &'a str },
    /// Processes were asked to stop.
    Stopping { role: &'static str, ids: &'a [u16] },
    /// A process is killed: it did not stop in time, or the user asked twice.
    Killed { role: &'static str, id: u16 },
    /// All processes have ended.
    Stopped { after_ms: u64 },
}

/// Where the news go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Teller {
    json: bool,
}

impl Teller {
    pub(crate) fn new(json: bool) -> Teller {
        Teller { json }
    }

    /// Says it. A closed standard output does not stop a cluster.
    pub(crate) fn tell(self, news: &News<'_>) {
        let text = if self.json {
            serde_json::to_string(news)
                .unwrap_or_else(|error| format!("{{\"event\":\"error\",\"text\":\"{error}\"}}"))
        } else {
            in_words(news)
        };
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

fn in_words(news: &News<'_>) -> String {
    match news {
        News::Starting { cluster_id, shape, data, processes } => {
            let mut text = format!("minikafka cluster {cluster_id}: {shape}\ndata in {}\n", data.display());
            for process in *processes {
                text.push_str(&line(process));
            }
            text.push_str("waiting for all of them ...");
            text
        }
        News::Waiting { role, id, because } => format!("  {role} {id}: {}", because.join("; ")),
        News::Ready { ready_ms, bootstrap, .. } => {
            let first = bootstrap.split(',').next().unwrap_or(bootstrap);
            let seconds = Duration::from_millis(*ready_ms).as_secs_f64();
            // The default bootstrap address need not be typed.
            let flag = if first == "127.0.0.1:9092" { String::new() } else { format!(" -b {first}") };
            format!(
                "ready after {seconds:.2} s; bootstrap servers {bootstrap}\n\
                 try:  kcat -b {first} -L\n      \
                 minikafka topic create orders --partitions 3 --replication-factor 3{flag}\n      \
                 echo hello | minikafka produce orders{flag}\n      \
                 minikafka consume orders --from beginning --exit-eof{flag}\n\
                 Ctrl-C stops the cluster; the data stays"
            )
        }
        News::Ended { role, id, pid, how, log, restart } => {
            let mut text = format!("{role} {id} (pid {pid}) {how}; its last lines:\n");
            for line in *log {
                text.push_str("  | ");
                text.push_str(line);
                text.push('\n');
            }
            text.push_str("start it again with:  ");
            text.push_str(restart);
            text
        }
        News::Stopping { role, ids } => {
            let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
            let plural = if ids.len() == 1 { "" } else { "s" };
            format!("stopping {role}{plural} {} (Ctrl-C again kills)", ids.join(", "))
        }
        News::Killed { role, id } => format!("killing {role} {id}"),
        News::Stopped { after_ms } => {
            format!("stopped after {:.2} s", Duration::from_millis(*after_ms).as_secs_f64())
        }
    }
}

fn line(process: &Process) -> String {
    let Process { role, id, pid, kafka, controller, http, .. } = process;
    let address = kafka.as_deref().or(controller.as_deref()).unwrap_or("-");
    format!("  {:<15} pid {pid:<8} {address:<17} http://{http}\n", format!("{role} {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_event_is_one_line_with_every_field_the_scripts_read() {
        let processes = [Process {
            role: "broker",
            id: 1,
            pid: 7,
            kafka: Some("127.0.0.1:9092".to_owned()),
            controller: None,
            http: "127.0.0.1:9292".to_owned(),
            data: "/d/broker-1".to_owned(),
            config: "/d/config/broker-1.properties".to_owned(),
            log: "/d/broker-1/server.log".to_owned(),
        }];
        let news = News::Ready {
            ready_ms: 812,
            bootstrap: "127.0.0.1:9092",
            data: Path::new("/d"),
            processes: &processes,
        };
        let value: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&news).expect("JSON")).expect("JSON again");
        assert_eq!(value["event"], "ready");
        assert_eq!(value["processes"][0]["http"], "127.0.0.1:9292");
        assert_eq!(value["processes"][0]["kafka"], "127.0.0.1:9092");
        assert!(value["processes"][0]["controller"].is_null());
    }

    #[test]
    fn the_ready_line_shows_how_to_try_it() {
        let news = News::Ready {
            ready_ms: 812,
            bootstrap: "127.0.0.1:19092,127.0.0.1:19094",
            data: Path::new("/d"),
            processes: &[],
        };
        let text = in_words(&news);
        assert!(text.starts_with("ready after 0.81 s"), "{text}");
        assert!(text.contains("produce orders -b 127.0.0.1:19092"), "{text}");
    }
}
