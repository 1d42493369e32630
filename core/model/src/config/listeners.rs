//! Roles, listeners, voters and directories: what several keys say together.

use std::collections::BTreeSet;
use std::fmt;

use super::resolved::Resolved;
use crate::ControllerId;

/// What a process is (`process.roles`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// A broker.
    pub broker: bool,
    /// A controller.
    pub controller: bool,
}

/// `NAME://host:port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// The host; empty for all addresses of the machine.
    pub host: String,
    /// The port; 0 lets the system choose.
    pub port: u16,
}

/// `id@host:port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Voter {
    /// The controller.
    pub id: ControllerId,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

fn host_and_port(host: &str, port: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.name)?;
        host_and_port(&self.host, self.port, f)
    }
}

impl fmt::Display for Voter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.id)?;
        host_and_port(&self.host, self.port, f)
    }
}

fn address(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text} is not host:port");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
        None if host.contains(':') => return Err(format!("{text}: an IPv6 address needs brackets")),
        None => host,
    };
    Ok((host.to_owned(), port.parse().map_err(|_| wrong())?))
}

fn listener(text: &str) -> Result<Listener, String> {
    let (name, rest) = text.split_once("://").ok_or_else(|| format!("{text} is not NAME://host:port"))?;
    let (host, port) = address(rest)?;
    Ok(Listener { name: name.trim().to_ascii_uppercase(), host, port })
}

fn voter(text: &str) -> Result<Voter, String> {
    let (id, rest) = text.split_once('@').ok_or_else(|| format!("{text} is not id@host:port"))?;
    let id = id.trim().parse().map_err(|_| format!("{text} does not begin with a node id"))?;
    let (host, port) = address(rest.trim())?;
    Ok(Voter { id: ControllerId(id), host, port })
}

impl Resolved {
    /// `process.roles`.
    pub fn roles(&self) -> Roles {
        let roles = self.list("process.roles");
        Roles { broker: roles.contains(&"broker"), controller: roles.contains(&"controller") }
    }

    /// `node.id`; none if it is missing, which [`super::resolve`] tells.
    pub fn node_id(&self) -> Option<i32> {
        self.maybe_int("node.id").and_then(|id| i32::try_from(id).ok())
    }

    /// `listeners`.
    ///
    /// # Errors
    /// What is wrong with it. A configuration that was resolved without problems has none.
    pub fn listeners(&self) -> Result<Vec<Listener>, String> {
        let named = |text: String| format!("listeners: {text}");
        self.list("listeners").into_iter().map(listener).collect::<Result<_, _>>().map_err(named)
    }

    /// `advertised.listeners`; where they are not given, the listeners that clients may use.
    ///
    /// # Errors
    /// As [`Resolved::listeners`].
    pub fn advertised_listeners(&self) -> Result<Vec<Listener>, String> {
        if self.text("advertised.listeners").is_none() {
            let controllers = self.list("controller.listener.names");
            let all = self.listeners()?;
            return Ok(all.into_iter().filter(|l| !controllers.contains(&l.name.as_str())).collect());
        }
        let named = |text: String| format!("advertised.listeners: {text}");
        self.list("advertised.listeners").into_iter().map(listener).collect::<Result<_, _>>().map_err(named)
    }

    /// `controller.quorum.voters`.
    ///
    /// # Errors
    /// As [`Resolved::listeners`].
    pub fn voters(&self) -> Result<Vec<Voter>, String> {
        let named = |text: String| format!("controller.quorum.voters: {text}");
        self.list("controller.quorum.voters").into_iter().map(voter).collect::<Result<_, _>>().map_err(named)
    }

    /// `controller.quorum.bootstrap.servers` as host and port.
    ///
    /// # Errors
    /// As [`Resolved::listeners`].
    pub fn bootstrap_controllers(&self) -> Result<Vec<(String, u16)>, String> {
        let named = |text: String| format!("controller.quorum.bootstrap.servers: {text}");
        let servers = self.list("controller.quorum.bootstrap.servers");
        servers.into_iter().map(address).collect::<Result<_, _>>().map_err(named)
    }

    /// The name of the listener that brokers use among themselves: `inter.broker.listener.name`, else PLAINTEXT.
    pub fn inter_broker_listener(&self) -> &str {
        self.text("inter.broker.listener.name").unwrap_or("PLAINTEXT")
    }

    /// `log.dirs`, else `log.dir`.
    pub fn log_dirs(&self) -> Vec<&str> {
        let dirs = self.list("log.dirs");
        if dirs.is_empty() { self.list("log.dir") } else { dirs }
    }

    /// `metadata.log.dir`, else the first of the log directories.
    pub fn metadata_log_dir(&self) -> &str {
        self.text("metadata.log.dir").or_else(|| self.log_dirs().first().copied()).unwrap_or_default()
    }

    /// What is missing, and what does not go together.
    pub(super) fn conflicts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let roles = self.roles();
        if !roles.broker && !roles.controller {
            found.push(
                "process.roles is missing: broker, controller, or both with a comma between".to_owned(),
            );
        }
        match self.maybe_int("node.id") {
            Some(id) if id >= 0 => {}
            _ => found.push("node.id is missing: a number from 0, unique in the cluster".to_owned()),
        }
        if self.list("log.dirs").len() > 1 {
            found.push("log.dirs: one directory is supported so far".to_owned());
        }
        let checks = [
            self.listeners().map(|_| ()),
            self.advertised_listeners().map(|_| ()),
            self.voters().map(|_| ()),
            self.bootstrap_controllers().map(|_| ()),
        ];
        found.extend(checks.into_iter().filter_map(Result::err));
        if found.is_empty() {
            self.listener_conflicts(roles, &mut found);
            self.quorum_conflicts(roles, &mut found);
            self.timer_conflicts(&mut found);
        }
        found
    }

    fn listener_conflicts(&self, roles: Roles, found: &mut Vec<String>) {
        let listeners = self.listeners().unwrap_or_default();
        let names: BTreeSet<&str> = listeners.iter().map(|l| l.name.as_str()).collect();
        if names.len() < listeners.len() {
            found.push("listeners: every listener needs a name of its own".to_owned());
        }
        let mut ports = BTreeSet::new();
        if listeners.iter().any(|l| l.port != 0 && !ports.insert((l.host.as_str(), l.port))) {
            found.push("listeners: every listener needs an address of its own".to_owned());
        }
        let controllers = self.list("controller.listener.names");
        if controllers.is_empty() {
            found.push("controller.listener.names is missing, for example CONTROLLER".to_owned());
        }
        if roles.controller && !listeners.iter().any(|l| controllers.contains(&l.name.as_str())) {
            found.push(format!(
                "listeners has no listener named {}, which a controller needs",
                controllers.join(" or ")
            ));
        }
        let of_broker = |name: &str| !controllers.contains(&name);
        if roles.broker && !names.contains(self.inter_broker_listener()) && self.is_given("listeners") {
            found.push(format!(
                "inter.broker.listener.name: listeners has no listener named {}",
                self.inter_broker_listener()
            ));
        }
        let advertised = self.advertised_listeners().unwrap_or_default();
        for listener in advertised.iter().filter(|_| roles.broker) {
            if listener.host == "0.0.0.0" || listener.host == "::" {
                found.push(format!(
                    "advertised.listeners: nobody can connect to {listener}; name an address that clients and other brokers can reach"
                ));
            }
            if of_broker(&listener.name)
                && self.is_given("advertised.listeners")
                && !names.contains(listener.name.as_str())
            {
                found
                    .push(format!("advertised.listeners: listeners has no listener named {}", listener.name));
            }
        }
    }

    fn quorum_conflicts(&self, roles: Roles, found: &mut Vec<String>) {
        let voters = self.voters().unwrap_or_default();
        let ids: BTreeSet<ControllerId> = voters.iter().map(|v| v.id).collect();
        if ids.len() < voters.len() {
            found.push("controller.quorum.voters: a node id stands twice".to_owned());
        }
        if voters.is_empty() && self.list("controller.quorum.bootstrap.servers").is_empty() {
            found.push(
                "controller.quorum.voters is missing, for example 101@host:9093,102@host:9093".to_owned(),
            );
        }
        let own = self.node_id().map(ControllerId);
        let is_voter = own.is_some_and(|own| ids.contains(&own));
        let shown = own.map_or_else(String::new, |own| own.to_string());
        if roles.controller && !is_voter {
            found.push(format!("controller.quorum.voters does not name this controller, node.id {shown}"));
        }
        if roles.broker && !roles.controller && is_voter {
            found.push(format!(
                "node.id {shown} is a controller's (controller.quorum.voters); a broker needs another"
            ));
        }
    }

    fn timer_conflicts(&self, found: &mut Vec<String>) {
        for (smaller, larger) in [
            ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
            ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        ] {
            let (a, b) = (self.int(smaller), self.int(larger));
            if a > b {
                found.push(format!("{smaller} ({a}) must not be more than {larger} ({b})"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Given, Source, resolve};
    use super::*;

    fn resolved(settings: &[(&str, &str)]) -> (Resolved, Vec<String>) {
        let given = settings.iter().map(|(key, value)| Given {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            source: Source::CommandLine,
        });
        let found = resolve(given);
        (found.resolved, found.problems.iter().map(ToString::to_string).collect())
    }

    const BROKER: &[(&str, &str)] = &[
        ("process.roles", "broker"),
        ("node.id", "1"),
        ("listeners", "PLAINTEXT://127.0.0.1:9092"),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.voters", "101@h:9093,102@[::1]:9093"),
        ("log.dirs", "/d"),
    ];

    #[test]
    fn a_broker_and_its_controllers() {
        let (resolved, problems) = resolved(BROKER);
        assert_eq!(problems, [""; 0]);
        assert_eq!(resolved.listeners().expect("good")[0].to_string(), "PLAINTEXT://127.0.0.1:9092");
        assert_eq!(resolved.advertised_listeners(), resolved.listeners());
        assert_eq!(resolved.voters().expect("good")[1].to_string(), "102@[::1]:9093");
        assert_eq!((resolved.log_dirs(), resolved.metadata_log_dir()), (vec!["/d"], "/d"));
    }

    fn problem(change: (&str, &str)) -> String {
        let mut settings: Vec<(&str, &str)> =
            BROKER.iter().copied().filter(|(key, _)| *key != change.0).collect();
        settings.push(change);
        resolved(&settings).1.join("; ")
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        for (change, wanted) in [
            (("node.id", "101"), "a controller's"),
            (("process.roles", "controller"), "CONTROLLER"),
            (("listeners", "PLAINTEXT:9092"), "NAME://host:port"),
            (("listeners", "INTERNAL://h:1"), "inter.broker.listener.name"),
            (("listeners", "PLAINTEXT://0.0.0.0:9092"), "0.0.0.0"),
            (("controller.quorum.voters", "101@h:1,101@h:2"), "twice"),
            (("controller.quorum.voters", "h:1"), "id@host:port"),
            (("broker.heartbeat.interval.ms", "9001"), "broker.session.timeout.ms"),
            (("log.dirs", "/a,/b"), "one directory"),
        ] {
            let found = problem(change);
            assert!(found.contains(wanted), "{change:?}: {found}");
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let (_, problems) = resolved(&[]);
        let text = problems.join("; ");
        assert!(text.contains("process.roles") && text.contains("node.id"), "{text}");
    }
}
