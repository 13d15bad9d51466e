//! Keeps the memory of this process, which holds secrets, off disks and out of other programs' hands (Z1).

/// No core dump of this process, whatever ends it, and none of the programs that it starts. Where a system hands dumps to a
/// program of its own the limit alone is not asked; so the process is marked as well, which also keeps its memory and its
/// environment from other processes of the same user. A system that has no such marks is left as it is.
pub fn off() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // A limit may always be lowered, and nothing is told where a system does it otherwise: there is no log yet.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
}
