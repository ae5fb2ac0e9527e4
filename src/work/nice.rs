//! Leaves the processor to the screen when both want it.

/// How much the critic's thread steps back.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

/// Lowers the priority of the calling thread, and with it of every thread it starts. Only on Linux, where a nice value
/// belongs to a thread; elsewhere it would slow the whole program.
#[cfg(target_os = "linux")]
pub(super) fn lower() {
    #[expect(unsafe_code, reason = "setpriority has no safe wrapper in std; it takes three integers and no memory")]
    // SAFETY: the call reads and writes no memory of ours; 0 names the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    if result != 0 {
        tracing::debug!("the critic's thread keeps its priority: {}", std::io::Error::last_os_error());
    }
}

/// Nothing to do here.
#[cfg(not(target_os = "linux"))]
pub(super) fn lower() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn only_the_thread_that_asks_steps_back() {
        fn nice_of_this_thread() -> i64 {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // Fields are counted after the name, which may hold blanks: the nice value is the 17th from there.
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()
        }
        let before = nice_of_this_thread();
        let lowered = std::thread::spawn(|| {
            super::lower();
            std::thread::spawn(nice_of_this_thread).join().unwrap()
        });
        assert_eq!(lowered.join().unwrap(), i64::from(super::NICE).max(before), "a child inherits it");
        assert_eq!(nice_of_this_thread(), before);
    }
}
