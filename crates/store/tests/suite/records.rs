//! Records: an id belongs to its owner; records without a source belong to the actor of trusted senders.

use super::alone::close;
use super::support::*;
use greenroom_store::commands::{RecordChange, RecordWritten, WriteRecord};
use greenroom_store::reads::records::RecordSpan;
use greenroom_store::records::Person;
use greenroom_store::{Store, reads};

fn person(source: &str, actor: &str) -> Person {
    Person { workspace_id: W.to_owned(), source: source.to_owned(), actor: actor.to_owned() }
}

async fn write(store: &Store, person: &Person, id: &str, change: RecordChange) -> RecordWritten {
    let (person, module, record_id) = (person.clone(), "memory".to_owned(), id.to_owned());
    store.commit(WriteRecord { person, module, record_id, change, now_ms: 7 }).await.unwrap()
}

fn put(body: &str) -> RecordChange {
    let (if_version, starts_at, ends_at, records_max) = (None, None, None, 10);
    RecordChange::Put { if_version, starts_at, ends_at, body: body.to_owned(), records_max }
}

async fn bodies(store: &Store, person: &Person) -> Vec<String> {
    let (mut bodies, mut after) = (Vec::new(), None);
    // Pages of one, so that the order of the pages counts.
    loop {
        let module = "memory".to_owned();
        let span = RecordSpan { module, from: None, to: None, after: after.take(), limit: 1 };
        let person = person.clone();
        let page = store.read(move |tx| reads::records::list(tx, &person, &span)).await.unwrap();
        let Some(last) = page.into_iter().next() else { return bodies };
        after = Some((0, last.record_id, last.owner));
        bodies.push(last.body);
    }
}

pub(crate) async fn an_id_belongs_to_its_owner(ground: Ground) {
    let store = ground.open();
    let people = [
        person("api", "ann"),
        person("api", "bob"),
        person("web", "ann"),
        person("api\u{1f}token:shop", "ann"),
    ];
    for (number, person) in people.iter().enumerate() {
        let written = write(&store, person, "tea", put(&number.to_string())).await;
        assert!(matches!(written, RecordWritten::Put(record) if record.version == 1));
    }
    for (number, person) in people.iter().enumerate() {
        assert_eq!(bodies(&store, person).await, [number.to_string()]);
    }
    // What is shared has the same id as an own record: both are listed.
    let share = RecordChange::Share { with: vec!["bob".to_owned()], links_max: 5 };
    assert!(matches!(write(&store, &people[0], "tea", share).await, RecordWritten::Links(_)));
    assert_eq!(bodies(&store, &people[1]).await, ["0", "1"]);
    assert_eq!(bodies(&store, &person("web", "bob")).await, [""; 0]);
    let gone = write(&store, &people[0], "tea", RecordChange::Delete { if_version: None }).await;
    assert_eq!(gone, RecordWritten::Deleted);
    assert_eq!(bodies(&store, &people[1]).await, ["1"]);
}

pub(crate) async fn a_record_without_a_source_is_adopted_by_its_first_change(ground: Ground) {
    close(ground.open()).await;
    ground.execute(
        "INSERT INTO records (workspace_id, module, record_id, owner, version, updated_at, body)
         VALUES ('default', 'memory', 'tea', 'ann', 3, 1, 'old')",
    );
    let store = ground.open();
    let (api, web) = (person("api", "ann"), person("web", "ann"));
    let own = person("api\u{1f}token:shop", "ann");
    assert_eq!(bodies(&store, &api).await, ["old"]);
    assert_eq!(bodies(&store, &web).await, ["old"]);
    assert_eq!(bodies(&store, &own).await, [""; 0]);
    let written = write(&store, &web, "tea", put("new")).await;
    assert!(matches!(written, RecordWritten::Put(record) if record.version == 4));
    assert_eq!(bodies(&store, &web).await, ["new"]);
    assert_eq!(bodies(&store, &api).await, [""; 0]);
}
