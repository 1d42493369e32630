//! One role in the foreground: the same code whether a person, a container or `up` starts it.

use minikafka_model::config::{Resolved, Roles};
use minikafka_node::{LogFormat, load_config};

use crate::args::Role;
use crate::failure::{Failure, Outcome};

/// `minikafka broker`.
pub(crate) fn broker(asked: &Role) -> Outcome {
    let _config = begin(asked, Roles { broker: true, controller: false })?;
    Err(Failure::error("this build cannot run brokers yet"))
}

/// `minikafka controller`.
pub(crate) fn controller(asked: &Role) -> Outcome {
    let _config = begin(asked, Roles { broker: false, controller: true })?;
    Err(Failure::error("this build cannot run controllers yet"))
}

/// `minikafka node`.
pub(crate) fn node(asked: &Role) -> Outcome {
    let _config = begin(asked, Roles { broker: true, controller: true })?;
    Err(Failure::error("this build cannot run combined nodes yet"))
}

/// Ties the process to its supervisor, loads the configuration and says what it is.
fn begin(asked: &Role, roles: Roles) -> Outcome<Resolved> {
    if let Some(supervisor) = asked.supervisor {
        minikafka_node::end_with_parent(supervisor).map_err(Failure::error)?;
    }
    let loaded = load_config(Some(&asked.config), std::env::vars(), &asked.set)
        .map_err(|problems| Failure::usage(problems.0.join("\n       ")))?;
    let config = loaded.resolved;
    if config.roles() != roles {
        return Err(Failure::usage(format!(
            "{}: process.roles={} is run by `minikafka {}`",
            asked.config.display(),
            config.text("process.roles").unwrap_or_default(),
            command_for(config.roles())
        )));
    }
    let format = match config.text("minikafka.log.format") {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    minikafka_node::init_telemetry("info", format);
    tracing::info!("minikafka {} starting, pid {}", env!("CARGO_PKG_VERSION"), std::process::id());
    config.lines().iter().for_each(|line| tracing::info!("{line}"));
    loaded.notes.iter().for_each(|note| tracing::warn!("{note}"));
    Ok(config)
}

const fn command_for(roles: Roles) -> &'static str {
    match (roles.broker, roles.controller) {
        (true, true) => "node",
        (false, true) => "controller",
        _ => "broker",
    }
}
