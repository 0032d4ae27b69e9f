//! Proxies, base path, certificate and the actors of senders.

use super::{mistakes, read};
use crate::{Actors, BasePath, Role, Server, Tls};
use insta::assert_snapshot;

#[test]
fn proxies_path_and_certificate_are_read() {
    let text = r#"[server]
trusted_proxies = ["127.0.0.1", "10.0.0.0/8", "::1"]
base_path = "/tools/greenroom/"
tls = { cert = "tls/cert.pem", key = "/etc/ssl/key.pem" }"#;
    let server = read(text).unwrap().config.server;
    let expected = Server {
        trusted_proxies: ["127.0.0.1", "10.0.0.0/8", "::1"].map(|it| it.parse().unwrap()).to_vec(),
        base_path: BasePath::parse("/tools/greenroom", |_| false).unwrap(),
        tls: Some(Tls {
            cert: "/srv/greenroom/tls/cert.pem".into(),
            key: "/etc/ssl/key.pem".into(),
        }),
        ..Server::default()
    };
    assert_eq!(server, expected);
}

#[test]
fn an_address_is_exposed_without_tls_or_a_trusted_proxy() {
    let exposed = |more: &str, address: &str| {
        let server = read(&format!("[server]\n{more}")).unwrap().config.server;
        server.exposed(address.parse().unwrap()).is_some()
    };
    for address in ["0.0.0.0:8700", "[::]:8700", "192.168.1.4:80", "[2001:db8::1]:80"] {
        assert!(exposed("", address), "{address}");
        assert!(!exposed("trusted_proxies = [\"10.0.0.1\"]", address), "{address}");
        assert!(!exposed("tls = { cert = \"c\", key = \"k\" }", address), "{address}");
    }
    for address in ["127.0.0.1:8700", "127.9.9.9:1", "[::1]:8700", "[::ffff:127.0.0.1]:80"] {
        assert!(!exposed("", address), "{address}");
    }
}

#[test]
fn mistakes_about_proxies_path_and_certificate_are_reported() {
    let text = r#"[server]
trusted_proxies = ["nginx.local"]
base_path = "/v1/greenroom"
tls = { cert = "cert.pem" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `nginx.local` is not the address of a proxy
      --> greenroom.toml:2:20
       |
     2 | trusted_proxies = ["nginx.local"]
       |                    ^^^^^^^^^^^^^
    hint: write an IP address or a network, e.g. `127.0.0.1` or `10.0.0.0/8`

    error: `/v1/greenroom` cannot be the path of the host: `/v1` is a path of the host itself
      --> greenroom.toml:3:13
       |
     3 | base_path = "/v1/greenroom"
       |             ^^^^^^^^^^^^^^^
    hint: write another name, e.g. `/greenroom`

    error: `server.tls` has no `key`
      --> greenroom.toml:4:7
       |
     4 | tls = { cert = "cert.pem" }
       |       ^^^^^^^^^^^^^^^^^^^^^
    hint: add `key = …`
    "#);
}

#[test]
fn a_sender_acts_for_its_own_for_one_or_for_any_actor() {
    let of = |actors: &str| {
        let text = format!("[tokens.t]\nrole = \"sender\"\ntoken = {{ env = \"T\" }}\n{actors}");
        match &read(&text).unwrap().config.tokens["t"].role {
            Role::Sender { actors, .. } => actors.clone(),
            role => panic!("{role:?}"),
        }
    };
    assert_eq!(of(""), Actors::Own);
    assert_eq!(of("actors = \"own\""), Actors::Own);
    assert_eq!(of("actors = \"any\""), Actors::Any);
    assert_eq!(of("actors = \"ann\""), Actors::One("ann".to_owned()));
    let text = "[tokens.t]\nrole = \"reader\"\ntoken = { env = \"T\" }\nactors = \"any\"";
    assert_snapshot!(mistakes(text), @r#"
    error: only a `sender` acts for actors
      --> greenroom.toml:4:10
       |
     4 | actors = "any"
       |          ^^^^^
    hint: remove `actors`, or make it a `sender`
    "#);
}
