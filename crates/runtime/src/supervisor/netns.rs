//! A network of the process's own: a namespace with nothing but loopback, and sockets that lead out of it.
//!
//! Invariant: in the namespace nothing of the machine's network can be reached except through the listeners
//! made here, which the host serves. They are made before the process is restricted, and sent to the host once.

use super::domain::Without;
use super::job::{Allowed, Network, Way};
use greenroom_config::{Destination, DestinationHost};
use rustix::io::{self, Errno};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg,
    socket, sockopt,
};
use rustix::thread::UnshareFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Listeners of one process: its host, its proxy, and addresses of its list.
pub(crate) const LISTENERS_MAX: usize = 64;
const BACKLOG: i32 = 128;
/// The only interface of a new namespace.
const LOOPBACK_INDEX: i32 = 1;

/// What a process has of the network.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Whether it has a namespace of its own.
    pub(super) is_isolated: bool,
    /// Without one: the ports it needs, of any machine.
    pub(super) ports: BTreeSet<u16>,
    /// How clients find the proxy.
    pub(super) env: BTreeMap<String, String>,
    /// Guarantees that are missing.
    pub(super) missing: Vec<String>,
}

/// Enters the namespace if the list asks for one, makes the listeners and hands them to the host.
pub(super) fn enter(
    network: &Network,
    handover: OwnedFd,
    without: Without,
) -> Result<Link, String> {
    let Network::Only(allowed) = network else { return Ok(Link::default()) };
    let isolated = match without.namespaces {
        true => Err("it is told to do without namespaces".to_owned()),
        false => isolate().map_err(|error| error.to_string()),
    };
    let mut link = Link { is_isolated: isolated.is_ok(), ..Link::default() };
    if let Err(why) = isolated {
        link.missing.push(format!(
            "no network of its own: the ports that it may use are open on every machine, since {why}"
        ));
    }
    let mut ways = Vec::new();
    for address in direct(allowed) {
        link.ports.insert(address.port());
        if !link.is_isolated {
            continue;
        }
        match listen_at(address) {
            Ok(listener) => ways.push((Way::Forward(address), listener)),
            Err(error) if allowed.host == Some(address) => {
                return Err(format!("cannot lead `{address}` to the host: {error}"));
            }
            Err(error) => link.missing.push(format!("`{address}` is not reachable: {error}")),
        }
    }
    if !allowed.list.is_empty() {
        let failed = |error: Errno| format!("cannot make a proxy: {error}");
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(failed)?;
        let port = port_of(&listener).map_err(failed)?;
        // Without a namespace others on this machine see the port.
        let password = match link.is_isolated {
            true => None,
            false => Some(format!("{:016x}", getrandom::u64().map_err(|e| e.to_string())?)),
        };
        link.ports.insert(port);
        link.env = environment(port, password.as_deref(), allowed);
        ways.push((Way::Proxy { password }, listener));
    }
    send(&handover, &ways).map_err(|error| format!("cannot hand over its network: {error}"))?;
    Ok(link)
}

/// Enters an empty namespace. Internet sockets are refused by their system call in any case; this hides the names
/// of the machine's Unix sockets.
pub(super) fn leave(without: Without) -> Link {
    let mut link = Link::default();
    // That there is no namespace at all is reported with the view.
    if !without.namespaces
        && let Err(why) = isolate()
    {
        let clause = "no network of its own: the names of the machine's Unix sockets are visible";
        link.missing.push(format!("{clause}, since {why}"));
    }
    link
}

/// The addresses that programs reach directly: the host, and those that the list names.
fn direct(allowed: &Allowed) -> BTreeSet<SocketAddr> {
    let named = allowed.list.iter().filter_map(|Destination { host, port }| match host {
        DestinationHost::Address(address) => Some(SocketAddr::new(*address, *port)),
        DestinationHost::Name(name) if name == "localhost" => {
            Some(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
        }
        DestinationHost::Name(_) | DestinationHost::Below(_) => None,
    });
    // One is for the proxy.
    allowed.host.into_iter().chain(named).take(LISTENERS_MAX - 1).collect()
}

/// Replaces what the configuration sets: no other proxy can be reached.
fn environment(port: u16, password: Option<&str>, allowed: &Allowed) -> BTreeMap<String, String> {
    let user = password.map_or(String::new(), |password| format!("greenroom:{password}@"));
    let proxy = format!("http://{user}127.0.0.1:{port}");
    let mut direct: BTreeSet<String> =
        self::direct(allowed).iter().map(|address| address.ip().to_string()).collect();
    direct.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let direct: Vec<String> = direct.into_iter().collect();
    let mut env = BTreeMap::from([("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned())]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        env.insert(name.to_owned(), proxy.clone());
        env.insert(name.to_lowercase(), proxy.clone());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        env.insert(name.to_owned(), direct.join(","));
    }
    env
}

/// Enters a network namespace in which loopback is up. Root can do it directly, and so can a process in a user
/// namespace of its own; others need one.
pub(super) fn isolate() -> io::Result<()> {
    if unshare(UnshareFlags::NEWNET).is_err() {
        let (user, group) =
            (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|_| Errno::PERM)?;
        }
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_LOOPBACK;
    let flags = i16::try_from(flags).map_err(|_| Errno::INVAL)?;
    let up = interface("lo", libc::__c_anonymous_ifr_ifru { ifru_flags: flags });
    configure(AddressFamily::INET, libc::SIOCSIFFLAGS, &up)
}

pub(super) fn listen_at(address: SocketAddr) -> io::Result<OwnedFd> {
    if !address.ip().is_loopback() {
        assign(address.ip())?;
    }
    listen(address)
}

/// Gives loopback one more address.
fn assign(address: IpAddr) -> io::Result<()> {
    match address {
        IpAddr::V4(address) => {
            // Every address needs a label of its own.
            let label = format!("lo:{:08x}", u32::from(address));
            let set = |call, address: Ipv4Addr| {
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: 0,
                    sin_addr: libc::in_addr { s_addr: u32::from(address).to_be() },
                    sin_zero: [0; 8],
                };
                #[expect(unsafe_code, reason = "the kernel takes one kind of address for another")]
                // SAFETY: both are plain structures of 16 bytes.
                let address: libc::sockaddr = unsafe { std::mem::transmute(address) };
                let request =
                    interface(&label, libc::__c_anonymous_ifr_ifru { ifru_addr: address });
                configure(AddressFamily::INET, call, &request)
            };
            set(libc::SIOCSIFADDR, address)?;
            set(libc::SIOCSIFNETMASK, Ipv4Addr::BROADCAST)
        }
        IpAddr::V6(address) => {
            #[repr(C)]
            struct Request {
                address: [u8; 16],
                prefix: u32,
                interface: i32,
            }
            let request =
                Request { address: address.octets(), prefix: 128, interface: LOOPBACK_INDEX };
            configure(AddressFamily::INET6, libc::SIOCSIFADDR, &request)
        }
    }
}

fn interface(name: &str, value: libc::__c_anonymous_ifr_ifru) -> libc::ifreq {
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: value };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from.cast_signed();
    }
    request
}

fn configure<T>(family: AddressFamily, call: libc::c_ulong, request: &T) -> io::Result<()> {
    let any = socket(family, SocketType::DGRAM, None)?;
    #[expect(unsafe_code, reason = "rustix has no calls for interfaces")]
    // SAFETY: each caller passes the structure that its call reads, which lives during the call.
    let result = unsafe { libc::ioctl(any.as_raw_fd(), call as _, std::ptr::from_ref(request)) };
    let error = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if result == 0 { Ok(()) } else { Err(error()) }
}

fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let listener = socket(family, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&listener, true)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn port_of(listener: &OwnedFd) -> io::Result<u16> {
    let address = SocketAddr::try_from(rustix::net::getsockname(listener)?);
    address.map(|address| address.port()).map_err(|_| Errno::INVAL)
}

pub(super) fn send(handover: &impl AsFd, ways: &[(Way, OwnedFd)]) -> Result<(), String> {
    let (ways, listeners): (Vec<&Way>, Vec<_>) =
        ways.iter().map(|(way, listener)| (way, listener.as_fd())).unzip();
    let line = serde_json::to_vec(&ways).map_err(|error| error.to_string())?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(LISTENERS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&listeners));
    let sent = sendmsg(handover, &[IoSlice::new(&line)], &mut ancillary, SendFlags::NOSIGNAL);
    match sent {
        Ok(sent) if sent == line.len() => Ok(()),
        Ok(_) => Err("the list is too long".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn unshare(what: UnshareFlags) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call is unsafe for the sake of descriptor tables only")]
    // SAFETY: this process has one thread, and the descriptor table is not unshared.
    unsafe {
        rustix::thread::unshare_unsafe(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_sent_to_the_proxy_except_for_what_they_reach_directly() {
        let list = ["api.example.com:443", "10.0.0.5:5432", "localhost:8080"];
        let allowed = Allowed {
            host: Some("127.0.0.1:8700".parse().unwrap()),
            list: list.map(|text| text.parse().unwrap()).to_vec(),
        };
        let addresses = ["10.0.0.5:5432", "127.0.0.1:8080", "127.0.0.1:8700"];
        assert_eq!(direct(&allowed), addresses.map(|text| text.parse().unwrap()).into());
        let env = environment(4321, Some("word"), &allowed);
        assert_eq!(env["HTTPS_PROXY"], "http://greenroom:word@127.0.0.1:4321");
        assert_eq!(env["all_proxy"], env["HTTPS_PROXY"]);
        assert_eq!(env["no_proxy"], "10.0.0.5,127.0.0.1,::1,localhost");
    }
}
