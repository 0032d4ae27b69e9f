//! Denies a runner the system calls that reach beyond its own processes, and every capability.
//!
//! Invariant: a denied call fails with an error that programs expect (`EPERM`, or `ENOSYS` where they have a
//! fallback), so that the runner continues. Threads, children and exec work as usual.

use super::job::Network;
use super::netns::Link;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Which Unix sockets a process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnixSockets {
    /// With names: those that it could reach are its own.
    Named,
    /// Only pairs that it makes itself.
    Pairs,
}

/// Which metadata of files a process may change and watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metadata {
    /// Of what its view of the file system shows as writable.
    OfView,
    /// None: a path cannot be proven to be its own.
    Refused,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `(argument, comparison, value)`; a rule matches if all of them do.
type Condition = (u8, SeccompCmpOp, u64);

/// Denied with any arguments.
const REFUSED: &[i64] = &[
    // Other processes of the same user, the host among them.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Memory and messages that outlive their process.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];
/// Metadata of files and watching them, by a path or by a descriptor that may be of any readable file.
const METADATA: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_inotify_add_watch,
];
/// Newer than the library that names the others.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;
/// Reported as unknown, so that libraries fall back: `clone` shows its flags, rings hide their calls.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Its mode is in memory, where no filter sees it.
    libc::SYS_openat2,
];
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// The bit of `O_TMPFILE` that no other flag has.
const TMPFILE: u64 = 0o20_000_000;
const SOCKET_TYPE: u64 = 0xf;
/// From before `AF_PACKET`, and still supported.
const SOCK_PACKET: u64 = 10;
/// Change attributes of a file by its descriptor.
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
/// Every process of a user, in `setpriority` and in `ioprio_set`.
const PRIO_USER: u64 = 2;
const IOPRIO_WHO_USER: u64 = 3;
/// Marks the calls of the x32 interface, which share an architecture with the others.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Calls that x32 has under numbers of its own: `sendmsg`, `ptrace`, `kexec_load`, `move_pages`, `sendmmsg`,
/// `process_vm_readv` and `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_OWN: [i64; 7] = [518, 521, 528, 533, 538, 539, 540];

/// Lets no program that this process starts have a capability. Best effort: it requires one itself, so it
/// comes before a change of the user.
pub(super) fn bound_capabilities() {
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = clear_ambient_capability_set();
}

/// The internet sockets that a process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InternetSockets {
    None,
    /// Only those whose port Landlock checks: connections over TCP.
    Tcp,
    All,
}

impl InternetSockets {
    pub(super) fn of(network: &Network, link: &Link) -> Self {
        match network {
            Network::Off => Self::None,
            Network::Only(_) if !link.is_isolated => Self::Tcp,
            Network::Only(_) | Network::On => Self::All,
        }
    }
}

/// Memory in a file without a name, which is none of a process's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamelessMemory {
    /// The supervisor counts it.
    Counted,
    Refused,
}

/// Drops every capability for good.
pub(super) fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("cannot give up capabilities: {error}"))?;
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| format!("cannot give up new privileges: {error}"))
}

/// Installs the filters; warns where the system has none.
pub(super) fn refuse(
    internet: InternetSockets,
    unix: UnixSockets,
    metadata: Metadata,
    memory: NamelessMemory,
    except: &[i64],
) -> Option<String> {
    let applied = unknown().and_then(|unknown| {
        let refused = refused(metadata, except)?;
        let offline = beyond(internet, unix, memory)?;
        seccompiler::apply_filter(&unknown)?;
        seccompiler::apply_filter(&offline)?;
        seccompiler::apply_filter(&refused)
    });
    applied.err().map(|error| {
        format!("system calls are not filtered, the runner can reach other processes: {error}")
    })
}

fn unknown() -> Result<BpfProgram, seccompiler::Error> {
    compile(UNKNOWN.iter().map(|call| (*call, Vec::new())).collect(), Errno::NOSYS)
}

fn refused(metadata: Metadata, except: &[i64]) -> Result<BpfProgram, seccompiler::Error> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let calls = REFUSED.iter().filter(|call| !except.contains(call));
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    privileged_modes(&mut rules)?;
    if metadata == Metadata::Refused {
        rules.extend(METADATA.iter().map(|call| (*call, Vec::new())));
        for attributes in [FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR] {
            add(&mut rules, libc::SYS_ioctl, &[(1, Eq, attributes)])?;
        }
    }
    let mut when = |call, conditions: &[Condition]| add(&mut rules, call, conditions);
    // Of a process other than the caller.
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        when(call, &[(0, Ne, 0)])?;
    }
    for (call, user) in
        [(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)]
    {
        when(call, &[(1, Ne, 0)])?;
        when(call, &[(0, Eq, user)])?;
    }
    // Other than asking, or the usual one.
    when(libc::SYS_personality, &[(0, Ne, 0), (0, Ne, u64::from(u32::MAX))])?;
    for flag in NAMESPACES.map(|flag| u64::from(flag.cast_unsigned())) {
        when(libc::SYS_clone, &[(0, MaskedEq(flag), flag)])?;
    }
    for device in [libc::S_IFCHR, libc::S_IFBLK].map(u64::from) {
        #[cfg(target_arch = "x86_64")]
        when(libc::SYS_mknod, &[(1, MaskedEq(libc::S_IFMT.into()), device)])?;
        when(libc::SYS_mknodat, &[(2, MaskedEq(libc::S_IFMT.into()), device)])?;
    }
    when(libc::SYS_socket, &[(0, Eq, number(libc::AF_PACKET))])?;
    // Of netlink only what name resolution needs.
    let route = number(libc::NETLINK_ROUTE);
    when(libc::SYS_socket, &[(0, Eq, number(libc::AF_NETLINK)), (2, Ne, route)])?;
    // Raw packets; of netlink, which tells of interfaces, every socket is raw.
    for kind in [number(libc::SOCK_RAW), SOCK_PACKET] {
        let raw = (1, MaskedEq(SOCKET_TYPE), kind);
        when(libc::SYS_socket, &[(0, Ne, number(libc::AF_NETLINK)), raw])?;
    }
    compile(rules, Errno::PERM)
}

/// Modes that let another user run a file as its owner or group: on disk, that is the host's user.
fn privileged_modes(rules: &mut Rules) -> Result<(), BackendError> {
    use SeccompCmpOp::MaskedEq;
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        let mode = |argument| (argument, MaskedEq(bit), bit);
        for (call, argument) in [
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chmod, 1),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_creat, 1),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_mknod, 1),
            (libc::SYS_fchmod, 1),
            (libc::SYS_fchmodat, 2),
            (libc::SYS_fchmodat2, 2),
            (libc::SYS_mknodat, 2),
        ] {
            add(rules, call, &[mode(argument)])?;
        }
        // Without one of these flags the mode is whatever the register has.
        for flag in [number(libc::O_CREAT), TMPFILE] {
            #[cfg(target_arch = "x86_64")]
            add(rules, libc::SYS_open, &[(1, MaskedEq(flag), flag), mode(2)])?;
            add(rules, libc::SYS_openat, &[(2, MaskedEq(flag), flag), mode(3)])?;
        }
    }
    Ok(())
}

/// What a process must not do to get beyond its network. No filter sees the name of a Unix socket: where a name
/// could be another process's, it has none but the pairs that it makes itself, and of those only kinds that
/// cannot be addressed elsewhere.
fn beyond(
    internet: InternetSockets,
    unix: UnixSockets,
    memory: NamelessMemory,
) -> Result<BpfProgram, seccompiler::Error> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    // No one counts what is in such a file.
    let mut rules = Rules::from([(libc::SYS_memfd_secret, Vec::new())]);
    match memory {
        NamelessMemory::Refused => drop(rules.insert(libc::SYS_memfd_create, Vec::new())),
        // Would hide its descriptors from the supervisor, and with them the memory they hold.
        NamelessMemory::Counted => {
            let hides = [(0, Eq, number(libc::PR_SET_DUMPABLE)), (1, Ne, 1)];
            add(&mut rules, libc::SYS_prctl, &hides)?;
        }
    }
    let mut when = |call, conditions: &[Condition]| add(&mut rules, call, conditions);
    when(libc::SYS_socketpair, &[(0, Ne, number(libc::AF_UNIX))])?;
    let (four, six) = ((0, Ne, number(libc::AF_INET)), (0, Ne, number(libc::AF_INET6)));
    // Part of every rule about `socket` that is not about Unix sockets.
    let mut others = Vec::new();
    match unix {
        UnixSockets::Named => others.push((0, Ne, number(libc::AF_UNIX))),
        UnixSockets::Pairs => {
            let datagram = (1, MaskedEq(SOCKET_TYPE), number(libc::SOCK_DGRAM));
            when(libc::SYS_socketpair, &[datagram])?;
        }
    }
    let other = |conditions: &[Condition]| [others.as_slice(), conditions].concat();
    match internet {
        InternetSockets::None if unix == UnixSockets::Named => when(libc::SYS_socket, &others)?,
        InternetSockets::None => {
            for call in [libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen] {
                rules.insert(call, Vec::new());
            }
        }
        InternetSockets::Tcp => {
            when(libc::SYS_socket, &other(&[four, six]))?;
            // Landlock knows TCP only: no other kind of socket, and no other protocol of that kind.
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP] {
                let kind = (1, MaskedEq(SOCKET_TYPE), number(kind));
                when(libc::SYS_socket, &other(&[kind]))?;
            }
            let (any, tcp) = (number(libc::IPPROTO_IP), number(libc::IPPROTO_TCP));
            when(libc::SYS_socket, &other(&[(2, Ne, any), (2, Ne, tcp)]))?;
            // Connects without `connect`, where Landlock does not look.
            let fast = number(libc::MSG_FASTOPEN);
            for (call, flags) in
                [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)]
            {
                when(call, &[(flags, MaskedEq(fast), fast)])?;
            }
        }
        // Netlink tells name resolution which addresses this machine has.
        InternetSockets::All => {
            let netlink = (0, Ne, number(libc::AF_NETLINK));
            when(libc::SYS_socket, &other(&[four, six, netlink]))?;
        }
    }
    compile(rules, Errno::PERM)
}

fn number(constant: i32) -> u64 {
    u64::from(constant.unsigned_abs())
}

fn add(rules: &mut Rules, call: i64, conditions: &[Condition]) -> Result<(), BackendError> {
    let all = conditions.iter().map(|(argument, comparison, value)| {
        SeccompCondition::new(*argument, Dword, comparison.clone(), *value)
    });
    let rule = all.collect::<Result<_, _>>().and_then(SeccompRule::new)?;
    rules.entry(call).or_default().push(rule);
    Ok(())
}

fn compile(mut rules: Rules, errno: Errno) -> Result<BpfProgram, seccompiler::Error> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut twins: Rules =
            rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        twins.extend(X32_OWN.map(|call| (call | X32, Vec::new())));
        rules.append(&mut twins);
    }
    let refuse = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?;
    Ok(filter.try_into()?)
}
