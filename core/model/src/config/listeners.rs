//! Roles, listeners, voters and directories: what several keys say together.

use std::collections::{BTreeMap, BTreeSet};
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

const PLAINTEXT: &str = "PLAINTEXT";
const PROTOCOLS: [&str; 4] = [PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// The first address that two listeners share; port 0 is a port of its own each time.
fn same_address(listeners: &[Listener]) -> Option<String> {
    let mut seen = BTreeSet::new();
    listeners
        .iter()
        .filter(|l| l.port != 0)
        .find(|l| !seen.insert((l.host.as_str(), l.port)))
        .map(ToString::to_string)
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
            let controllers = self.controller_listeners();
            let all = self.listeners()?;
            return Ok(all.into_iter().filter(|l| !controllers.contains(&l.name)).collect());
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

    /// The name of the listener that brokers use among themselves: `inter.broker.listener.name`, else PLAINTEXT. Names of listeners
    /// are compared in capitals, as Kafka does.
    pub fn inter_broker_listener(&self) -> String {
        self.text("inter.broker.listener.name").unwrap_or("PLAINTEXT").to_ascii_uppercase()
    }

    /// `controller.listener.names`, in capitals.
    pub fn controller_listeners(&self) -> Vec<String> {
        self.list("controller.listener.names").into_iter().map(str::to_ascii_uppercase).collect()
    }

    /// `listener.security.protocol.map`, names in capitals. Where it is not given, controller listeners speak PLAINTEXT.
    fn protocols(&self) -> Result<BTreeMap<String, String>, String> {
        const MAP: &str = "listener.security.protocol.map";
        let mut protocols = BTreeMap::new();
        for entry in self.list(MAP) {
            let (name, protocol) =
                entry.split_once(':').ok_or_else(|| format!("{MAP}: {entry} is not NAME:PROTOCOL"))?;
            let (name, protocol) = (name.trim().to_ascii_uppercase(), protocol.trim().to_ascii_uppercase());
            if !PROTOCOLS.contains(&protocol.as_str()) {
                return Err(format!("{MAP}: {protocol} is none of {}", PROTOCOLS.join(", ")));
            }
            if protocols.insert(name, protocol).is_some() {
                return Err(format!("{MAP}: a name stands twice ({entry})"));
            }
        }
        if !self.is_given(MAP) {
            for name in self.controller_listeners() {
                protocols.entry(name).or_insert_with(|| PLAINTEXT.to_owned());
            }
        }
        Ok(protocols)
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
        if let Some(twice) = same_address(&listeners) {
            found.push(format!("listeners: every listener needs an address of its own, {twice} has not"));
        }
        let controllers = self.controller_listeners();
        if controllers.is_empty() {
            found.push("controller.listener.names is missing, for example CONTROLLER".to_owned());
        }
        let own = listeners.iter().find(|l| controllers.contains(&l.name));
        match own {
            None if roles.controller => found.push(format!(
                "listeners has no listener named {}, which a controller needs",
                controllers.join(" or ")
            )),
            Some(own) if !roles.controller => found.push(format!(
                "listeners: {own} is a controller's by controller.listener.names, and this node is none"
            )),
            _ => {}
        }
        self.protocol_conflicts(&listeners, &controllers, found);
        if roles.broker {
            self.broker_listener_conflicts(&names, &controllers, found);
        }
    }

    /// Nothing but PLAINTEXT is there: a listener that was to be encrypted or authenticated must not be open by mistake.
    fn protocol_conflicts(&self, listeners: &[Listener], controllers: &[String], found: &mut Vec<String>) {
        let protocols = match self.protocols() {
            Ok(protocols) => protocols,
            Err(problem) => return found.push(problem),
        };
        let names: BTreeSet<&String> = listeners.iter().map(|l| &l.name).chain(controllers).collect();
        for name in names {
            match protocols.get(name).map(String::as_str) {
                Some(PLAINTEXT) => {}
                Some(other) => found.push(format!(
                    "listener.security.protocol.map: {name} is to speak {other}; only {PLAINTEXT} is there so far"
                )),
                None => found.push(format!(
                    "listener.security.protocol.map says nothing of {name}; add {name}:{PLAINTEXT}"
                )),
            }
        }
    }

    fn broker_listener_conflicts(
        &self,
        names: &BTreeSet<&str>,
        controllers: &[String],
        found: &mut Vec<String>,
    ) {
        let inter_broker = self.inter_broker_listener();
        if controllers.contains(&inter_broker) {
            found.push(format!(
                "inter.broker.listener.name: {inter_broker} is a controller's (controller.listener.names)"
            ));
        } else if !names.contains(inter_broker.as_str()) {
            found.push(format!("inter.broker.listener.name: listeners has no listener named {inter_broker}"));
        }
        let advertised = self.advertised_listeners().unwrap_or_default();
        if let Some(twice) = same_address(&advertised) {
            found.push(format!("advertised.listeners: two listeners cannot be told apart by {twice}"));
        }
        for listener in &advertised {
            if listener.host == "0.0.0.0" || listener.host == "::" {
                found.push(format!(
                    "advertised.listeners: nobody can connect to {listener}; name an address that clients and other brokers can reach"
                ));
            }
            if self.text("advertised.listeners").is_none() || controllers.contains(&listener.name) {
                continue;
            }
            if listener.host.is_empty() {
                found.push(format!("advertised.listeners: {listener} has no host"));
            }
            if !names.contains(listener.name.as_str()) {
                found
                    .push(format!("advertised.listeners: listeners has no listener named {}", listener.name));
            }
        }
        if names.contains(inter_broker.as_str()) && !advertised.iter().any(|l| l.name == inter_broker) {
            found.push(format!(
                "advertised.listeners has no listener named {inter_broker}, by which brokers reach each other"
            ));
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
            (("listeners", "PLAINTEXT://h:1,controller://h:2"), "is a controller's"),
            (("listeners", "PLAINTEXT://h:1,SSL://h:2"), "SSL is to speak SSL"),
            (("listeners", "PLAINTEXT://h:1,INSIDE://h:2"), "add INSIDE:PLAINTEXT"),
            (("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"), "add CONTROLLER:PLAINTEXT"),
            (("listener.security.protocol.map", "PLAINTEXT:TLS"), "TLS is none of"),
            (("inter.broker.listener.name", "controller"), "CONTROLLER is a controller's"),
            (("advertised.listeners", "PLAINTEXT://:9092"), "has no host"),
            (("advertised.listeners", "OTHER://h:9092"), "no listener named OTHER"),
        ] {
            let found = problem(change);
            assert!(found.contains(wanted), "{change:?}: {found}");
        }
    }

    #[test]
    fn names_of_listeners_are_compared_without_case() {
        let (resolved, problems) = resolved(&[
            ("process.roles", "broker,controller"),
            ("node.id", "1"),
            ("listeners", "inside://:19092,outside://:9092,Control://:9093"),
            ("advertised.listeners", "Inside://one:19092,OUTSIDE://localhost:29092"),
            ("inter.broker.listener.name", "inside"),
            ("controller.listener.names", "control"),
            ("listener.security.protocol.map", "control:PLAINTEXT,inside:plaintext,outside:PLAINTEXT"),
            ("controller.quorum.voters", "1@one:9093"),
        ]);
        assert_eq!(problems, [""; 0]);
        assert_eq!(
            (resolved.inter_broker_listener().as_str(), resolved.controller_listeners()),
            ("INSIDE", vec!["CONTROL".to_owned()])
        );
        assert_eq!(resolved.advertised_listeners().expect("good").len(), 2);
    }

    #[test]
    fn two_listeners_need_two_advertised_addresses() {
        let (_, problems) = resolved(&[
            ("process.roles", "broker"),
            ("node.id", "1"),
            ("listeners", "A://:1,B://:2"),
            ("advertised.listeners", "A://h:1,B://h:1"),
            ("inter.broker.listener.name", "A"),
            ("controller.listener.names", "CONTROLLER"),
            ("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT"),
            ("controller.quorum.voters", "2@h:9093"),
        ]);
        assert_eq!(problems, ["advertised.listeners: two listeners cannot be told apart by B://h:1"]);
    }

    #[test]
    fn what_is_missing_is_told() {
        let (_, problems) = resolved(&[]);
        let text = problems.join("; ");
        assert!(text.contains("process.roles") && text.contains("node.id"), "{text}");
    }
}
