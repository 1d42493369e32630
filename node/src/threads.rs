//! Threads with names that show in `ps -T` and in `/proc/<pid>/task/*/comm`.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

/// The kernel keeps fifteen bytes of a thread's name.
const NAME_LIMIT: usize = 15;

/// Starts a thread. A name longer than fifteen bytes is cut by the kernel; ours are not.
///
/// # Errors
/// The operating system's, where it can start no more threads.
pub fn spawn_named<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    debug_assert!(name.len() <= NAME_LIMIT, "thread name {name} is longer than the kernel shows");
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Starts a thread that runs one future on a tokio runtime of its own (one thread, as the design wants it).
///
/// # Errors
/// The operating system's, where it can start no more threads or descriptors.
pub fn block_on_thread<F, T>(
    name: &str,
    future: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<T>>
where
    F: Future<Output = T>,
    T: Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    spawn_named(name, move || runtime.block_on(future()))
}
