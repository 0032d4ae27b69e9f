//! What a process may use: memory it does not map, threads, files, bytes, deep folders.

use crate::child::{Kit, is_root};
use greenroom_runtime::{ChildEnd, ChildSpec, Finished};

/// As root and as an ordinary user, if this is root.
fn kits() -> Vec<Kit> {
    let mut kits = vec![Kit::new()];
    kits.extend(is_root().then(Kit::as_user));
    kits
}

fn assert_stopped(finished: &Finished, message: &str) {
    assert_eq!(
        (finished.ended, finished.message.as_str()),
        (ChildEnd::Stopped, message),
        "{finished:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_in_a_nameless_file_counts_whether_it_is_mapped_or_not() {
    for kit in kits() {
        let spec = ChildSpec { memory_mb: 128, ..kit.spec(&["memfd"]) };
        let finished = kit.run(&spec).await.unwrap();
        assert_stopped(&finished, "was stopped: it used more than 128 MB of memory (`memory_mb`)");
        assert_eq!(finished.stdout, b"");
        let spec = ChildSpec { memory_mb: 128, ..kit.spec(&["shared"]) };
        assert_eq!(kit.output(&spec).await, "kept");
        assert!(kit.is_clear());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_counts_after_the_first_thread_has_ended_and_page_tables_count_too() {
    for kit in kits() {
        for verb in ["leader", "tables"] {
            let spec = ChildSpec { memory_mb: 128, ..kit.spec(&[verb]) };
            let finished = kit.run(&spec).await.unwrap();
            let message = "was stopped: it used more than 128 MB of memory (`memory_mb`)";
            assert_stopped(&finished, message);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn space_that_an_idle_process_reserves_in_one_call_counts() {
    let kit = Kit::new();
    let spec = ChildSpec { disk_mb: 50, ..kit.spec(&["reserve"]) };
    let finished = kit.run(&spec).await.unwrap();
    assert_stopped(&finished, "was stopped: its folders have more than 50 MB (`disk_mb`)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_cannot_hide_what_it_holds() {
    for kit in kits() {
        // `PR_SET_DUMPABLE` fails, `PR_GET_DUMPABLE` is unchanged.
        assert_eq!(kit.output(&kit.spec(&["hide"])).await, serde_json::json!([-1, 1]));
    }
    if is_root() {
        let kit = Kit::as_user();
        let finished = kit.run(&kit.spec(&["unreadable"])).await.unwrap();
        let message = "was stopped: one of its processes hides its open files, so its memory cannot \
                       be measured";
        assert_stopped(&finished, message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_limited() {
    let kit = Kit::new();
    let spec = ChildSpec { threads: 40, ..kit.spec(&["threads", "200"]) };
    let finished = kit.run(&spec).await.unwrap();
    assert_stopped(&finished, "was stopped: it had more than 40 threads (`threads`)");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_and_files_of_its_folders_are_limited() {
    for kit in kits() {
        for place in ["own", "temporary", "home"] {
            let spec = ChildSpec { disk_mb: 50, ..kit.spec(&["fill", "bytes", place]) };
            let finished = kit.run(&spec).await.unwrap();
            assert_stopped(&finished, "was stopped: its folders have more than 50 MB (`disk_mb`)");
            assert!(kit.is_clear());
            clear_own(&kit);
        }
        let spec = ChildSpec { disk_mb: 50, ..kit.spec(&["fill", "deleted", "temporary"]) };
        let finished = kit.run(&spec).await.unwrap();
        assert_stopped(&finished, "was stopped: its folders have more than 50 MB (`disk_mb`)");
        let spec = ChildSpec { files: 300, ..kit.spec(&["fill", "files", "own"]) };
        let finished = kit.run(&spec).await.unwrap();
        assert_stopped(&finished, "was stopped: its folders have more than 300 files (`files`)");
    }
}

/// A folder that is over its limit would stop the next process too.
fn clear_own(kit: &Kit) {
    for entry in std::fs::read_dir(kit.path("own")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_20000_levels_deep_is_removed_at_the_end() {
    for kit in kits() {
        let finished = kit.run(&kit.spec(&["deep", "20000"])).await.unwrap();
        // Ends by itself, or is stopped while it works.
        match finished.ended {
            ChildEnd::Exited(0) => assert_eq!(finished.stdout, b"\"deep\"\n"),
            _ => {
                assert_stopped(&finished, "was stopped: its folders are nested more than 256 deep")
            }
        }
        assert!(kit.is_clear());
    }
}
