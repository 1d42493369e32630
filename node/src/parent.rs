//! A child of `minikafka up` ends with its supervisor, whatever ended that.

use std::io;

/// Asks the kernel to send this process SIGTERM when the thread that started it ends, and ends at once if it is gone already.
/// Call it early in `main` of a child; `parent` is the process id of the supervisor.
///
/// # Errors
/// The kernel's, or "the supervisor has already ended".
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if now != Some(parent) {
        return Err(io::Error::other(format!("the supervisor (pid {parent}) has already ended")));
    }
    Ok(())
}
