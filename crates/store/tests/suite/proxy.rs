//! A wire between the store and its server that can be cut at the worst moment.
//!
//! Invariant: what is sent before the cut reaches the server; only the answer is lost.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Plan {
    /// The connection that sends this next is cut.
    word: Mutex<Option<&'static str>>,
    lost: AtomicUsize,
}

pub(crate) struct Proxy {
    port: u16,
    plan: Arc<Plan>,
}

impl Proxy {
    pub(crate) fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Plan::default());
        let shared = plan.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let plan = shared.clone();
                let (answers, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let cut = Arc::new(Mutex::new(false));
                let is_cut = cut.clone();
                std::thread::spawn(move || pass_requests(client, server, &plan, &cut));
                std::thread::spawn(move || pass_answers(answers, to, &is_cut));
            }
        });
        Proxy { port, plan }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn lose_the_next_answer_to(&self, word: &'static str) {
        *self.plan.word.lock().unwrap() = Some(word);
    }

    /// How many answers were lost.
    pub(crate) fn lost(&self) -> usize {
        self.plan.lost.load(Ordering::SeqCst)
    }
}

fn pass_requests(mut client: TcpStream, mut server: TcpStream, plan: &Plan, cut: &Mutex<bool>) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let request = &buffer[..length];
        let mut word = plan.word.lock().unwrap();
        let hit =
            word.is_some_and(|word| request.windows(word.len()).any(|w| w == word.as_bytes()));
        if hit {
            *cut.lock().unwrap() = true;
            *word = None;
        }
        if server.write_all(request).is_err() {
            break;
        }
        if hit {
            plan.lost.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}

/// The first answer after the cut is swallowed, and with it both connections end.
fn pass_answers(mut server: TcpStream, mut client: TcpStream, cut: &Mutex<bool>) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        if *cut.lock().unwrap() || client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}
