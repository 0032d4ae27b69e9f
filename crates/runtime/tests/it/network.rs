//! The network of a process: the host's port and a list, through clients that others wrote.

use crate::child::{Kit, is_root};
use greenroom_runtime::{Allowed, ChildSpec, Network, Without};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

/// Greets every connection, as an HTTP server that answers anything.
fn server(greeting: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.write_all(greeting.as_bytes());
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read(&mut [0; 4096]);
            });
        }
    });
    address
}

fn web_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).unwrap_or(0);
                let line = String::from_utf8_lossy(&request[..length]);
                let line = line.lines().next().unwrap_or_default().to_owned();
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
                let _ = write!(stream, "{head}content-length: {}\r\n\r\n{line}", line.len());
            });
        }
    });
    address
}

/// Runs as root and as an ordinary user, if this is root.
fn kits() -> Vec<Kit> {
    let mut kits = vec![Kit::new()];
    kits.extend(is_root().then(Kit::as_user));
    kits
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_a_network_reaches_the_host_and_nothing_else() {
    for kit in kits() {
        let (host, other) = (server("host"), server("other"));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let udp_port = udp.local_addr().unwrap().port();
        let ports = [host.port(), other.port(), udp_port].map(|port| port.to_string());
        let spec = kit.spec(&["network", &ports[0], &ports[1], &ports[2]]);
        let spec = ChildSpec { network: Network::host(host), ..spec };
        let expected = json!({
            "host": "ok: host", "other": "ConnectionRefusedError", "elsewhere": "OSError",
            "udp": "ok: 1", "dns": "gaierror", "local": "ok: None", "proxies": [],
        });
        let finished = kit.run(&spec).await.unwrap();
        assert_eq!(finished.warnings, Vec::<String>::new());
        let found: Value = serde_json::from_slice(&finished.stdout).unwrap();
        assert_eq!(found, expected);
        let said = format!("+netns:{}+", host.port());
        assert!(finished.isolation.contains(&said), "{}", finished.isolation);
        assert!(udp.recv(&mut [0; 10]).is_err(), "the datagram left the namespace");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_reached_by_urllib_and_curl_and_nothing_else_is() {
    for kit in kits() {
        let (listed, other) = (web_server(), web_server());
        let allowed = Allowed { host: None, list: vec![listed.to_string().parse().unwrap()] };
        let spec = kit.spec(&["proxy", &listed.port().to_string(), &other.port().to_string()]);
        let found = kit.output(&ChildSpec { network: Network::Only(allowed), ..spec }).await;
        let refused = |target: &str| {
            format!(
                "`{target}` is not in the network of `child`\nhint: add \"{target}\" to its \
                 `network` in the configuration of the host\n"
            )
        };
        let of_other = refused(&other.to_string());
        assert_eq!(
            found,
            json!({
                "direct": "GET /x HTTP/1.1", "direct_other": "URLError",
                "listed": "GET /x HTTP/1.1", "other": format!("403: {of_other}"),
                "name": format!("403: {}", refused("example.com:80")),
                "curl": "GET /x HTTP/1.1", "curl_other": of_other, "tunnel": "GET /x HTTP/1.1",
                "tunnel_other": "curl 56: curl: (56) CONNECT tunnel failed, response 403",
            })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_at_another_address_than_loopback_is_reached_at_that_address() {
    // Not an address of this machine: only the namespace leads there, and the host does not answer.
    let kit = Kit::new();
    let host: SocketAddr = "192.0.2.1:8700".parse().unwrap();
    let spec = kit.spec(&["network", "8700", "8701", "8702"]);
    let found = kit.output(&ChildSpec { network: Network::host(host), ..spec }).await;
    assert_eq!(
        (&found["elsewhere"], &found["host"]),
        (&json!("ok: None"), &json!("ConnectionRefusedError"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_end_with_the_process() {
    let kit = Kit::new();
    let host = server("host");
    for _ in 0..3 {
        let port = host.port().to_string();
        let spec = kit.spec(&["network", &port, &port, "1"]);
        let found = kit.output(&ChildSpec { network: Network::host(host), ..spec }).await;
        assert_eq!(found["host"], "ok: host");
        assert!(kit.is_clear());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_ports_are_limited_and_the_lost_guarantee_is_named() {
    let kit = Kit::without(Without { namespaces: true, ..Without::default() });
    let (host, other) = (server("host"), server("other"));
    let ports = [host.port(), other.port()].map(|port| port.to_string());
    let spec = kit.spec(&["network", &ports[0], &ports[1], "9"]);
    let spec = ChildSpec { network: Network::host(host), ..spec };
    let found = kit.output(&spec).await;
    let no = "PermissionError";
    let expected = [("host", "ok: host"), ("other", no), ("udp", no), ("local", no)];
    for (what, expected) in expected {
        assert_eq!(found[what], expected, "{what}");
    }
    let domain = kit.children.probe(&spec).await.unwrap().domain;
    assert!(domain.parts.contains(&format!("net:{}", host.port())), "{domain:?}");
    let named = domain.missing.iter().any(|text| text.starts_with("no network of its own"));
    assert!(named, "{domain:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_the_proxy_of_a_list_has_a_password() {
    let kit = Kit::without(Without { namespaces: true, ..Without::default() });
    let (listed, other) = (web_server(), web_server());
    let allowed = Allowed { host: None, list: vec![listed.to_string().parse().unwrap()] };
    let spec = kit.spec(&["proxy", &listed.port().to_string(), &other.port().to_string()]);
    let found = kit.output(&ChildSpec { network: Network::Only(allowed), ..spec }).await;
    for what in ["direct", "listed", "curl", "tunnel"] {
        assert_eq!(found[what], "GET /x HTTP/1.1", "{what}");
    }
    for what in ["other", "name", "curl_other"] {
        let text = found[what].as_str().unwrap();
        assert!(text.contains("is not in the network of `child`"), "{what}: {text}");
    }
    assert_eq!(found["direct_other"], "URLError");
}
