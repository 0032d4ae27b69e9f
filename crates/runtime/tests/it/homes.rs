//! The home of a program that stays: kept until its next start, and private.

use crate::child::{Kit, enforced, is_root};
use crate::who::may_mount;
use greenroom_runtime::{Child, ChildSpec};
use tokio::io::AsyncReadExt;

/// Runs a shell line as a program that stays, to its end; returns its output.
async fn said(kit: &Kit, name: &str, line: &str) -> String {
    let command = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
    let spec = ChildSpec { name: name.to_owned(), command, ..kit.spec(&[]) };
    let Child { stdin, mut stdout, mut hold } = kit.children.start(&spec).await.unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    drop(stdin);
    hold.ended().await;
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_keeps_at_home_is_there_at_its_next_start_for_it_alone() {
    if is_root() && !may_mount() {
        return;
    }
    let kit = Kit::new();
    let home = kit.text("data/tools/npx");
    let first = said(&kit, "npx", "echo fetched > $HOME/cache; echo $HOME").await;
    assert_eq!(first, format!("{home}\n"));
    let again = said(&kit, "npx", "cat $HOME/cache; echo $HOME").await;
    assert_eq!(again, format!("fetched\n{home}\n"));
    let other = said(&kit, "other", &format!("cat {home}/cache; echo $HOME")).await;
    assert_ne!(other.trim(), first.trim());
    assert_eq!(other.contains("fetched"), !enforced(), "{other}");
    let token = kit.text("data/admin-token");
    let seen = said(&kit, "npx", &format!("cat {token}; ls {}", kit.text("data/run"))).await;
    assert_eq!(seen.is_empty(), enforced(), "{seen}");
    assert!(kit.is_clear());
}
