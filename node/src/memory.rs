//! The allocator's thresholds.

/// Keeps large buffers in the process instead of giving them back to the kernel after each use: without this, 1 MiB buffers are mapped,
/// zeroed and faulted in anew at every fetch (measured: a third of the throughput). Call it first thing in `main`.
pub fn raise_malloc_thresholds() {
    #[cfg(target_env = "gnu")]
    {
        const KEEP: libc::c_int = 256 << 20;
        const TOP_PAD: libc::c_int = 1 << 20;
        // SAFETY: mallopt only sets parameters of the allocator and is called before other threads exist.
        #[allow(unsafe_code)]
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEEP);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEEP);
            libc::mallopt(libc::M_TOP_PAD, TOP_PAD);
        }
    }
}
