//! Storage and state: writes, listings and usage.

use crate::audit::record;
use crate::support::{Ground, W, accept, all_state, apply, completed, event, fence, results};
use greenroom_store::commands::{
    ApplyResults, RunFence, StateWritten, StorageWritten, WriteState, WriteStorage,
};
use greenroom_store::reads::audit::AuditFilter;
use greenroom_store::reads::storage::{StorageEntry, StorageSpan, Usage};
use greenroom_store::types::{Diagnostic, StateWrite};
use greenroom_store::{Store, reads};

fn write(owner: &str, name: &str, value: Option<&[u8]>) -> WriteStorage {
    WriteStorage {
        fence: fence("run-a"),
        owner: owner.to_owned(),
        name: name.to_owned(),
        value: value.map(<[u8]>::to_vec),
        owner_bytes_max: 1000,
        workspace_bytes_max: 2000,
        audit: None,
        now_ms: 2_000,
    }
}

async fn get(store: &Store, owner: &'static str, name: &str) -> Option<Vec<u8>> {
    let name = name.to_owned();
    store.read(move |tx| reads::storage::get(tx, W, owner, &name)).await.unwrap()
}

async fn used(store: &Store, owner: &str) -> Usage {
    let owner = owner.to_owned();
    store.read(move |tx| reads::storage::usage(tx, W, &owner)).await.unwrap()
}

async fn used_together(store: &Store) -> Usage {
    store.read(|tx| reads::storage::usage_of_workspace(tx, W)).await.unwrap()
}

/// A store in which `run-a` is running.
async fn open(ground: &Ground) -> Store {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    store
}

pub(crate) async fn a_blob_is_kept_replaced_and_removed(ground: Ground) {
    let store = open(&ground).await;
    let bytes: Vec<u8> = (0..=255).collect();
    let steps: [(Option<&[u8]>, StorageWritten); 5] = [
        (None, StorageWritten::Deleted(false)),
        (Some(&bytes), StorageWritten::Set { size: 256 }),
        (Some(b""), StorageWritten::Set { size: 0 }),
        (Some(b"\0\xff"), StorageWritten::Set { size: 2 }),
        (None, StorageWritten::Deleted(true)),
    ];
    for (value, expected) in steps {
        assert_eq!(store.commit(write("o", "键/../n", value)).await.unwrap(), expected);
        assert_eq!(get(&store, "o", "键/../n").await.as_deref(), value);
        assert_eq!(get(&store, "p", "键/../n").await, None);
    }
    assert_eq!(used(&store, "o").await, Usage::default());
    assert!(store.commit(write("", "n", Some(b"1"))).await.is_err());
}

pub(crate) async fn only_the_run_under_way_writes(ground: Ground) {
    let store = open(&ground).await;
    let mine = || write("o", "n", Some(b"1"));
    let strangers = [
        RunFence { attempt: 2, ..fence("run-a") },
        RunFence { epoch: 2, ..fence("run-a") },
        fence("run-b"),
        RunFence { workspace_id: "elsewhere".to_owned(), ..fence("run-a") },
    ];
    for fence in strangers {
        let stranger = WriteStorage { fence, ..mine() };
        assert_eq!(store.commit(stranger).await.unwrap(), StorageWritten::Stale);
    }
    apply(&store, completed(&crate::support::run(&store, "run-a").await, 1)).await;
    assert_eq!(store.commit(mine()).await.unwrap(), StorageWritten::Stale);
    assert_eq!(get(&store, "o", "n").await, None);
    assert_eq!(used_together(&store).await, Usage::default());
}

pub(crate) async fn names_are_listed_by_any_prefix(ground: Ground) {
    let store = open(&ground).await;
    let names =
        ["%", "_", "a", "a/1", "a/2", "a0", "b", "数", "数据", "\u{ffff}", "😀", "\u{10ffff}x"];
    for name in names.iter().rev() {
        store.commit(write("o", name, Some(name.as_bytes()))).await.unwrap();
    }
    store.commit(write("p", "a/9", Some(b"1"))).await.unwrap();
    let list = async |prefix: &str, after: &str, limit: usize| {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let span = StorageSpan { prefix, after, limit };
        let read = store.read(move |tx| reads::storage::list(tx, W, "o", &span));
        let (found, more) = read.await.unwrap();
        (found.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), more)
    };
    let expect = |names: &[&str], more: bool| {
        (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), more)
    };
    assert_eq!(list("", "", 100).await, expect(&names, false));
    assert_eq!(list("a", "", 2).await, expect(&["a", "a/1"], true));
    assert_eq!(list("a", "a/1", 2).await, expect(&["a/2", "a0"], false));
    assert_eq!(list("a/", "", 2).await, expect(&["a/1", "a/2"], false));
    assert_eq!(list("%", "", 9).await, expect(&["%"], false));
    assert_eq!(list("_", "", 9).await, expect(&["_"], false));
    assert_eq!(list("数", "数", 9).await, expect(&["数据"], false));
    assert_eq!(list("\u{10ffff}", "", 9).await, expect(&["\u{10ffff}x"], false));
    assert_eq!(list("b", "a", 9).await, expect(&["b"], false));
    assert_eq!(list("a", "b", 9).await, expect(&[], false));
    assert_eq!(list("zz", "", 9).await, expect(&[], false));
    let span = StorageSpan { prefix: "数据".to_owned(), limit: 1, ..StorageSpan::default() };
    let read = store.read(move |tx| reads::storage::list(tx, W, "o", &span)).await.unwrap();
    let entry = StorageEntry { name: "数据".to_owned(), size: 6, updated_at: 2_000 };
    assert_eq!(read, (vec![entry], false));
}

pub(crate) async fn quotas_hold_for_owner_and_workspace(ground: Ground) {
    let store = open(&ground).await;
    let blob = |size: usize| vec![7; size];
    let put = async |owner: &str, name: &str, size: usize| {
        store.commit(write(owner, name, Some(&blob(size)))).await.unwrap()
    };
    // One byte of name each.
    assert_eq!(put("o", "a", 599).await, StorageWritten::Set { size: 599 });
    assert_eq!(put("o", "b", 400).await, StorageWritten::OverQuota { used: 600, max: 1000 });
    assert_eq!(put("o", "b", 399).await, StorageWritten::Set { size: 399 });
    assert_eq!(used(&store, "o").await, Usage { bytes: 1000, entries: 2 });
    assert_eq!(put("o", "a", 600).await, StorageWritten::OverQuota { used: 1000, max: 1000 });
    assert_eq!(put("o", "a", 599).await, StorageWritten::Set { size: 599 }, "the same again");
    assert_eq!(put("p", "a", 999).await, StorageWritten::Set { size: 999 });
    assert_eq!(put("q", "a", 0).await, StorageWritten::OverQuota { used: 2000, max: 2000 });
    assert_eq!(used_together(&store).await, Usage { bytes: 2000, entries: 3 });
    assert_eq!(used(&store, "q").await, Usage::default());
    // A quota that was lowered: what is there may shrink and go.
    let lowered = |name: &str, value: Option<&[u8]>| WriteStorage {
        owner_bytes_max: 10,
        workspace_bytes_max: 10,
        ..write("o", name, value)
    };
    let shrunk = store.commit(lowered("a", Some(&blob(100)))).await.unwrap();
    assert_eq!(shrunk, StorageWritten::Set { size: 100 });
    let grown = store.commit(lowered("a", Some(&blob(101)))).await.unwrap();
    assert_eq!(grown, StorageWritten::OverQuota { used: 501, max: 10 });
    let gone = store.commit(lowered("b", None)).await.unwrap();
    assert_eq!(gone, StorageWritten::Deleted(true));
    assert_eq!(used(&store, "o").await, Usage { bytes: 101, entries: 1 });
    assert_eq!(used_together(&store).await, Usage { bytes: 1101, entries: 2 });
}

pub(crate) async fn every_write_keeps_its_record(ground: Ground) {
    let store = open(&ground).await;
    let called = |at_ms, size: usize| WriteStorage {
        audit: Some(record("storage.set", "ok", at_ms)),
        ..write("o", "n", Some(&vec![0; size]))
    };
    store.commit(called(1, 10)).await.unwrap();
    store.commit(called(2, 1000)).await.unwrap();
    let other = RunFence { attempt: 2, ..fence("run-a") };
    store.commit(WriteStorage { fence: other, ..called(3, 1) }).await.unwrap();
    let all = AuditFilter::default();
    let page = store.read(move |tx| reads::audit::page(tx, W, &all, None, 9)).await.unwrap();
    let expected = [
        record("storage.set", "unauthorized", 3),
        record("storage.set", "payload_too_large", 2),
        record("storage.set", "ok", 1),
    ];
    let found: Vec<_> = page.entries.into_iter().map(|entry| entry.record).collect();
    assert_eq!(found, expected);
}

fn state(name: &str, value: Option<&str>) -> WriteState {
    WriteState {
        fence: fence("run-a"),
        owner: "o".to_owned(),
        name: name.to_owned(),
        value: value.map(str::to_owned),
        if_version: None,
        expires_at: None,
        owner_bytes_max: Some(10),
        audit: None,
        now_ms: 2_000,
    }
}

pub(crate) async fn state_has_a_quota_through_the_proxy(ground: Ground) {
    let store = open(&ground).await;
    let steps = [
        (state("a", Some("1234")), StateWritten::Set(1)),
        (state("b", Some("12345")), StateWritten::OverQuota { used: 5, max: 10 }),
        (state("b", Some("1234")), StateWritten::Set(1)),
        (state("a", Some("12345")), StateWritten::OverQuota { used: 10, max: 10 }),
        (WriteState { owner: "p".to_owned(), ..state("a", Some("1")) }, StateWritten::Set(1)),
        (state("a", None), StateWritten::Deleted(true)),
        (state("a", None), StateWritten::Deleted(false)),
        (state("b", Some("123456789")), StateWritten::Set(2)),
        (state("c", Some("1")), StateWritten::OverQuota { used: 10, max: 10 }),
        (WriteState { owner_bytes_max: None, ..state("c", Some("1")) }, StateWritten::Set(1)),
        // What has expired is as good as gone, but still takes space until it is written or collected.
        (WriteState { expires_at: Some(1), ..state("b", Some("1")) }, StateWritten::Set(3)),
        (state("b", None), StateWritten::Deleted(false)),
        (state("d", Some("1234567")), StateWritten::Set(1)),
    ];
    for (number, (command, expected)) in steps.into_iter().enumerate() {
        assert_eq!(store.commit(command).await.unwrap(), expected, "step {number}");
    }
}

pub(crate) async fn state_has_a_quota_in_results(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let write = |name: &str, value: Option<&str>| StateWrite {
        owner: "o".to_owned(),
        name: name.to_owned(),
        value: value.map(str::to_owned),
        owner_bytes_max: Some(10),
    };
    let writes = [
        write("a", Some("1234")),
        write("b", Some("12345")),
        write("a", None),
        write("c", Some("123456789")),
    ];
    apply(&store, ApplyResults { state: writes.to_vec(), ..results(&first) }).await;
    let span = all_state();
    let read = store.read(move |tx| reads::state::list(tx, W, "o", &span, 0)).await.unwrap();
    let kept: Vec<_> = read.0.into_iter().map(|row| (row.name, row.value)).collect();
    assert_eq!(kept, [("c".to_owned(), "123456789".to_owned())]);
    let told = store.read(|tx| reads::runs::diagnostics(tx, "run-a", 9)).await.unwrap();
    let expected = Diagnostic {
        kind: "state.over_quota".to_owned(),
        message: "`b` was not written: its scope has 5 of 10 bytes in use".to_owned(),
        created_at: 2_000,
    };
    assert_eq!(told, [expected]);
    assert_eq!(
        store.commit(state("d", Some("1"))).await.unwrap(),
        StateWritten::OverQuota { used: 10, max: 10 },
        "both ways to write share one sum"
    );
}

pub(crate) async fn sums_agree_with_the_rows_after_random_writes(ground: Ground) {
    let store = open(&ground).await;
    let mut dice = 42_u64;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    for _ in 0..200 {
        let owner = ["o", "p"][usize::try_from(roll(2)).unwrap()];
        let name = format!("{}数", roll(8));
        let size = usize::try_from(roll(300)).unwrap();
        let value = (roll(4) > 0).then(|| vec![1; size]);
        store.commit(write(owner, &name, value.as_deref())).await.unwrap();
    }
    let mut together = Usage::default();
    for owner in ["o", "p"] {
        let span = StorageSpan { limit: 100, ..StorageSpan::default() };
        let list = store.read(move |tx| reads::storage::list(tx, W, owner, &span));
        let (entries, _) = list.await.unwrap();
        let bytes = entries.iter().map(|entry| entry.size + 4).sum();
        let counted = Usage { bytes, entries: i64::try_from(entries.len()).unwrap() };
        assert_eq!(used(&store, owner).await, counted);
        together.bytes += counted.bytes;
        together.entries += counted.entries;
    }
    assert!(together.entries > 0 && together.bytes <= 2000);
    assert_eq!(used_together(&store).await, together);
}
