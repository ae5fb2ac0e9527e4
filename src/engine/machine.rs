//! What there is to compute with: memory, instruction sets, the name of the processor.

use std::path::Path;

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All there is, or all that this program may use.
    pub total: u64,
    /// What could be taken now without pushing others out.
    pub available: u64,
}

/// The machine's memory, or what a container leaves of it. `None` where the system does not say so in `/proc`.
pub fn memory() -> Option<Memory> {
    let machine = meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(within(machine, Path::new("/sys/fs/cgroup")))
}

fn meminfo(text: &str) -> Option<Memory> {
    let bytes = |name: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Memory { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? })
}

/// The limit of a control group, if there is one.
fn within(machine: Memory, group: &Path) -> Memory {
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    match number("memory.max") {
        Some(max) if max < machine.total => {
            let used = number("memory.current").unwrap_or(0);
            Memory { total: max, available: max.saturating_sub(used).min(machine.available) }
        }
        _ => machine,
    }
}

/// Seconds of processor time this program has used so far, all its threads together.
pub fn cpu_seconds() -> Option<f64> {
    cpu_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Ticks a second in `/proc/self/stat`: 100 on every Linux of today, whatever the kernel's own clock is.
const TICKS: f64 = 100.0;

fn cpu_ticks(stat: &str) -> Option<f64> {
    // The name in parentheses may hold blanks and parentheses. After it: state, ten numbers, user and system time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

/// Most bytes of memory this program has had so far.
pub fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Mean number of programs that wanted to run in the last minute.
pub fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The processor's name, where the system says so.
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Instruction sets that matter for matrix products, and whether this processor has them.
#[cfg(target_arch = "x86_64")]
pub fn instruction_sets() -> Vec<(&'static str, bool)> {
    vec![
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ("avx512vnni", std::arch::is_x86_feature_detected!("avx512vnni")),
        ("avx512bf16", std::arch::is_x86_feature_detected!("avx512bf16")),
        ("avxvnni", std::arch::is_x86_feature_detected!("avxvnni")),
        ("amx-int8", flag("amx_int8")),
        ("amx-bf16", flag("amx_bf16")),
    ]
}

/// Instruction sets that matter for matrix products, and whether this processor has them.
#[cfg(target_arch = "aarch64")]
pub fn instruction_sets() -> Vec<(&'static str, bool)> {
    vec![
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("fp16", std::arch::is_aarch64_feature_detected!("fp16")),
        ("dotprod", std::arch::is_aarch64_feature_detected!("dotprod")),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("bf16", std::arch::is_aarch64_feature_detected!("bf16")),
    ]
}

/// Instruction sets that matter for matrix products: none is known of this kind of processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn instruction_sets() -> Vec<(&'static str, bool)> {
    Vec::new()
}

/// A flag of Linux' list, for what the standard library cannot ask yet.
#[cfg(target_arch = "x86_64")]
fn flag(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|l| l.starts_with("flags"));
    flags.is_some_and(|l| l.split_whitespace().any(|f| f == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal:       24690000 kB\nMemFree:          100 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(meminfo(text), Some(Memory { total: 24_690_000 << 10, available: 20_000_000 << 10 }));
        assert_eq!(meminfo("MemTotal: many kB"), None);
    }

    #[test]
    fn a_container_has_what_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Memory { total: 1000, available: 800 };
        assert_eq!(within(machine, folder.path()), machine);
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        assert_eq!(within(machine, folder.path()), machine);
        write("memory.max", "600\n");
        write("memory.current", "150\n");
        assert_eq!(within(machine, folder.path()), Memory { total: 600, available: 450 });
        write("memory.max", "2000\n");
        assert_eq!(within(machine, folder.path()), machine, "a limit above what there is is none");
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 9 9";
        assert_eq!(cpu_ticks(stat), Some(3.0));
        assert_eq!(cpu_ticks("42 (a) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_says_what_it_has() {
        let memory = memory().unwrap();
        assert!(memory.available > 0 && memory.available <= memory.total, "{memory:?}");
        assert!(peak_memory().unwrap() > 1 << 20);
        assert!(load_average().unwrap() >= 0.0);
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}
