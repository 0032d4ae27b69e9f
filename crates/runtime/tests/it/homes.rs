//! The home of a program that stays: there at its next start, and nobody else's.

use crate::child::{Kit, enforced};
use greenroom_runtime::{Child, ChildSpec};
use std::path::PathBuf;
use tokio::io::AsyncReadExt;

/// Runs a line of shell as a program that stays, to its end, and gives back what it said.
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
    let kit = Kit::new();
    let first = said(&kit, "npx", "echo fetched > $HOME/cache; echo $HOME").await;
    let home = PathBuf::from(first.trim());
    let again = said(&kit, "npx", "cat $HOME/cache; echo $HOME").await;
    assert_eq!(again, format!("fetched\n{}\n", home.display()));
    let other = said(&kit, "other", &format!("cat {}/cache; echo $HOME", home.display())).await;
    assert_ne!(other.trim(), first.trim());
    assert_eq!(other.contains("fetched"), !enforced(), "{other}");
    let token = kit.text("data/admin-token");
    assert_eq!(said(&kit, "npx", &format!("cat {token}; ls {}", kit.text("data"))).await, "");
    for name in ["npx", "other"] {
        let place = kit.path("data/tools").join(name);
        let real = std::fs::canonicalize(&place).unwrap();
        // Where the program is another user's than the data folder, it is not in there.
        if real != place {
            std::fs::remove_dir_all(real).unwrap();
        }
    }
    assert!(kit.is_clear());
}
