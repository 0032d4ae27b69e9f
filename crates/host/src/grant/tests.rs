//! Grants as earlier versions stored them.

use super::*;

/// As version 0.1.0 wrote it.
const FIRST: &str = r#"{"agent":"player","runner_id":"plugin:recorded/player/main","config":{"tone":"dry"},"history":{"reach":"workspace","operations":["page","search"]},"events":{"reach":"workspace","operations":["get","page"]},"artifacts":{"reach":"workspace","operations":["metadata","read","create"]},"state":["conversation","actor","subject","runner","binding"],"storage":["plugin","workspace","binding"],"actions":{"message.send":"ask"},"models":{"names":["main","priced"],"operations":["invoke","stream"]},"tools":{"names":["project_cli","shed.hold","shed.note"],"operations":["detail","call"]},"knowledge":{"names":[],"operations":[]},"methods":["calendar.read"],"skills":[],"risks":{"read":"always","write":"always","destructive":"ask","external":"always"},"steering":false}"#;

#[test]
fn a_grant_of_the_first_version_means_what_it_meant() {
    let grant: Grant = serde_json::from_str(FIRST).unwrap();
    assert_eq!(grant.agent, "player");
    assert_eq!((grant.history.reach, grant.history.operations.len()), (Reach::Workspace, 2));
    assert_eq!((grant.state.len(), grant.storage.len()), (5, 3));
    assert_eq!(grant.actions["message.send"], Approval::Ask);
    assert_eq!(grant.models.names, ["main", "priced"]);
    assert_eq!(grant.risks[&Risk::Destructive], Approval::Ask);
    assert_eq!(grant.config["tone"], "dry");
}

#[test]
fn what_a_grant_does_not_say_is_not_granted() {
    let text = r#"{"agent":"a","runner_id":"plugin:x/y/z","a_field_of_old":true}"#;
    let grant: Grant = serde_json::from_str(text).unwrap();
    assert_eq!((grant.history.reach, grant.artifacts.reach), (Reach::None, Reach::None));
    assert!(grant.history.operations.is_empty() && grant.tools.names.is_empty());
    assert!(grant.state.is_empty() && grant.storage.is_empty() && grant.actions.is_empty());
    assert!(grant.risks.is_empty() && !grant.steering);
}
