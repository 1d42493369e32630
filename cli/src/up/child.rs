//! One child process of `up`: started in a process group of its own, with its output in `server.log`, and told to end with us.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::layout::NodePlan;
use crate::failure::{Failure, Outcome};

/// How much of the end of a log is looked at for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;
/// How many last lines are shown.
const TAIL_LINES: usize = 8;

/// Starts the process of a node: this very program with the role's subcommand.
///
/// Call it on the main thread: the kernel ends the child when the *thread* that started it ends.
///
/// # Errors
/// The operating system's.
pub(crate) fn start(program: &Path, node: &NodePlan) -> Outcome<Child> {
    let named = |error: io::Error| Failure::error(format!("{node} cannot be started: {error}"));
    let log = node.log();
    let log = OpenOptions::new().create(true).append(true).open(&log).map_err(named)?;
    Command::new(program)
        .arg(node.role.name())
        .arg("--config")
        .arg(&node.config)
        .arg("--supervisor")
        .arg(std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(named)?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(named)
}

/// Sends a signal to a child that was not waited for yet; one that has ended is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The only error left is "no such process": it has ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// How a process ended, in words.
pub(crate) fn how(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("has ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}{}", name_of(signal)),
            (None, None) => "has ended".to_owned(),
        },
        Err(error) => format!("was lost sight of: {error}"),
    }
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// The last lines of a log; empty where it cannot be read.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    let tail = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = tail().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.log");
        assert!(last_lines(&path).is_empty());
        let text: String = (0..100).map(|n| format!("line {n}\n\n")).collect();
        std::fs::write(&path, text).expect("written");
        let lines = last_lines(&path);
        assert_eq!(lines.len(), TAIL_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("line 99"));
    }
}
