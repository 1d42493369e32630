//! `minikafka container`: the node of a container, as process 1 runs it.
//!
//! It completes the configuration from the environment, starts the node as a child, hands every signal on to it, reaps what the
//! container's other processes leave behind, and ends with the node's own exit code.

mod settings;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Container;
use crate::failure::{Failure, Outcome};
use settings::Settings;

pub(crate) use settings::HTTP;

/// Where Apache's image looks for a mounted configuration.
const MOUNTED: &str = "/mnt/shared/config/server.properties";

/// Runs the node until it ends; returns its exit code.
///
/// # Errors
/// An environment that names no role; a file that cannot be read; the operating system's.
pub(crate) fn run(asked: &Container) -> Outcome<u8> {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let file = mounted(asked.config.as_deref())?;
    let settings = settings::complete(&env, file.as_deref()).map_err(Failure::usage)?;
    for warning in &settings.warnings {
        // Where standard error is closed there is nobody to warn.
        let _ = writeln!(io::stderr(), "WARN {warning}");
    }
    if asked.print {
        return io::stdout().write_all(settings.properties.as_bytes()).map(|()| 0).map_err(Failure::error);
    }
    // Signals are caught before the child exists, so that none is lost between.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::error)?;
    runtime
        .block_on(watch(&settings))
        .map_err(|error| Failure::error(format!("the node cannot be watched: {error}")))
}

fn mounted(asked: Option<&Path>) -> Outcome<Option<String>> {
    let path = match asked {
        Some(path) => path,
        None if Path::new(MOUNTED).is_file() => Path::new(MOUNTED),
        None => return Ok(None),
    };
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| Failure::error(format!("configuration {}: {error}", path.display())))
}

/// Starts the node: this very program, with its file on standard input, so that a read-only container needs no place for it.
fn start(settings: &Settings) -> io::Result<Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args([
        settings.part.name(),
        "--config",
        "/dev/stdin",
        "--supervisor",
        &std::process::id().to_string(),
    ]);
    for name in &settings.dealt_with {
        command.env_remove(name);
    }
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(settings.properties.as_bytes())?;
    }
    Ok(child)
}

async fn watch(settings: &Settings) -> io::Result<u8> {
    let mut ended = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let child = start(settings)?;
    let node = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("no process id"))?;
    loop {
        let passed_on = tokio::select! {
            _ = ended.recv() => {
                if let Some(code) = reap(node)? {
                    return Ok(code);
                }
                continue;
            }
            _ = terminate.recv() => Signal::TERM,
            _ = interrupt.recv() => Signal::INT,
            _ = hang_up.recv() => Signal::HUP,
            _ = quit.recv() => Signal::QUIT,
        };
        // The only error left is "no such process": its end is on its way to us.
        let _ = kill_process(node, passed_on);
    }
}

/// Takes in every child that has ended, strangers included: process 1 inherits orphans. The node's exit code, if it was among them.
fn reap(node: Pid) -> io::Result<Option<u8>> {
    let mut code = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == node => code = Some(code_of(status)),
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(code),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// As a shell gives it: the code, or 128 and the signal.
fn code_of(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
