//! Restores that do not come to their end.
#![cfg(feature = "faults")]

use crate::scene::{back_up, event, prepare, restore, run_with};
use greenroom_testkit::host::Started;
use greenroom_testkit::postgres::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_is_killed_is_never_taken_for_a_host() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let mut host = prepare("");
    host.start_again().await;
    let api = host.api();
    api.ended_run(&api.send_event(&event("echo", "c", "kept")).await.run_id.unwrap()).await;
    let file = back_up(&host, "backup.tar").await;
    for fault in ["after_table_loaded:3", "before_load_committed:1"] {
        for store in [None, Some(&database.url)] {
            let mut new = prepare("");
            let (data, file) = (new.data(), file.to_str().unwrap());
            let args = ["backup", "restore", file, "--data", data.to_str().unwrap()];
            let store = store.into_iter().flat_map(|url| ["--store", url.as_str()]);
            let told = run_with(args.into_iter().chain(store), Some(fault)).await;
            assert_eq!(told.code, -1, "{told:?}");
            assert!(matches!(new.try_start().await, Started::Died(_)));
            assert!(new.log().contains("did not finish"), "{}", new.log());
            restore(file.as_ref(), &new, &[]).await.refused("did not finish");
        }
    }
    // Nothing of it is left in the database.
    let url = format!("[store]\nurl = \"{}\"\n", database.url);
    let mut new = prepare(&url);
    let told = restore(&file, &new, &["--store", &database.url]).await;
    assert_eq!(told.code, 0, "{told:?}");
    new.start_again().await;
    assert_eq!(new.api().answers("c").await, ["kept"]);
}
