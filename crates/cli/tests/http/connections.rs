//! Connections that are slow, silent, greedy or many.

use crate::stage::Stage;
use greenroom_testkit::http::{self, Request};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

#[tokio::test]
async fn requests_sent_in_one_go_are_answered_in_order() {
    let stage = Stage::start().await;
    let one = |target: &str, last: &str| {
        format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n")
    };
    let all = [
        one("/healthz", ""),
        one("/nowhere", ""),
        one("/readyz", ""),
        one("/v1/runs", "connection: close\r\n"),
    ];
    let answers = stage.raw(all.concat().as_bytes()).await;
    let statuses: Vec<&str> =
        answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "404", "200", "401"], "{answers}");
}

#[tokio::test]
async fn heads_beyond_all_measure_are_refused() {
    let stage = Stage::start().await;
    let head = |headers: &str| format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    let many: String = (0..1000).map(|number| format!("x-{number}: 1\r\n")).collect();
    let large = format!("x-large: {}\r\n", "x".repeat(200_000));
    for (what, request) in [("many", head(&many)), ("large", head(&large))] {
        let answer = stage.raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{what}: {answer}");
    }
    let address = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000));
    let answer = stage.raw(address.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    for garbage in [
        "\0\0\0\0",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}hello",
        "GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "GET / HTTP/1.1\r\nhost : localhost\r\n\r\n",
    ] {
        let answer = stage.raw(garbage.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{garbage:?}: {answer}");
    }
    let mut connect =
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n".to_owned();
    connect += &"x-fine: 1\r\n".repeat(50);
    let answer = stage.raw(format!("{connect}\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn a_head_that_drips_in_is_given_up() {
    let stage = Stage::with("[limits]\nrequest_timeout_s = 1").await;
    let mut slow = TcpStream::connect(stage.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let mut silent = TcpStream::connect(stage.address).await.unwrap();
    let mut kept = TcpStream::connect(stage.address).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    for connection in [&mut slow, &mut silent, &mut kept] {
        let mut answer = Vec::new();
        let read = connection.read_to_end(&mut answer);
        let closed = tokio::time::timeout(std::time::Duration::from_secs(30), read).await;
        closed.expect("the host closes it").unwrap();
    }
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn idle_connections_beyond_the_bound_do_not_keep_others_out() {
    let stage = Stage::with("[limits]\nconnections_open = 8\nrequest_timeout_s = 1").await;
    let mut idle = Vec::new();
    for _ in 0..24 {
        idle.push(TcpStream::connect(stage.address).await.unwrap());
    }
    let answer = http::send(stage.address, &Request::get("/healthz")).await.unwrap();
    assert_eq!(answer.status, 200);
    drop(idle);
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn thousands_of_idle_connections_leave_room_for_work() {
    let stage = Stage::start().await;
    // As many as this process may have, up to ten thousand.
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = descriptors.saturating_sub(500).clamp(100, 10_000);
    let mut connecting = JoinSet::new();
    for _ in 0..count {
        connecting.spawn(TcpStream::connect(stage.address));
    }
    let idle = connecting.join_all().await;
    assert!(idle.iter().all(Result::is_ok));
    stage.is_untouched_and_well().await;
    let memory = stage.host.memory();
    assert!(memory.resident_bytes < 400 << 20, "{memory:?} with {count} connections");
    drop(idle);
    assert_eq!(stage.get("/v1/runs").await.status, 200);
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let stage = Stage::start().await;
    let (address, token) = (stage.address, stage.admin.clone());
    let mut requests = JoinSet::new();
    for number in 0..200 {
        let token = token.clone();
        requests.spawn(async move {
            let target = ["/v1/runs", "/healthz", "/v1/agents", "/v1/events"][number % 4];
            let request = Request::get(target).header("authorization", format!("Bearer {token}"));
            http::send(address, &request).await.unwrap().status
        });
    }
    assert!(requests.join_all().await.iter().all(|status| *status == 200));
}

#[tokio::test]
async fn readers_that_take_nothing_are_given_up_and_keep_no_one_out() {
    let stage = Stage::with("[limits]\nconnections_open = 8\nrequest_timeout_s = 1").await;
    let run_id = stage.play("c", "/count n=50000").await;
    stage.api().ended_run(&run_id).await;
    let head = format!(
        "GET /v1/runs/{run_id}/results HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         authorization: Bearer {}\r\n\r\n",
        stage.admin
    );
    let mut readers = Vec::new();
    for _ in 0..8 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut reader = socket.connect(stage.address).await.unwrap();
        reader.write_all(head.as_bytes()).await.unwrap();
        reader.readable().await.unwrap();
        readers.push(reader);
    }
    let answer = http::send(stage.address, &Request::get("/healthz")).await.unwrap();
    assert_eq!(answer.status, 200);
    drop(readers);
}
