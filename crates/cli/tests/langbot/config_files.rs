//! `get_config_file`: files of an agent's grant (issue 23, point 13).

use crate::stage::{Stage, agent};
use serde_json::json;

#[tokio::test]
async fn a_plugin_reads_the_files_of_its_agents_grant_by_their_names() {
    let agents = agent("greedy", "reader", "greedy", "")
        + "[agents.greedy.grant]\nfiles = [\"docs/handbook.md\"]\n";
    let stage = Stage::open(&["reader"], &agents).await;
    let docs = stage.host.folder().join("docs");
    std::fs::create_dir(&docs).unwrap();
    std::fs::write(docs.join("handbook.md"), "# Whales\n").unwrap();
    std::fs::write(docs.join("other.md"), "# Others\n").unwrap();
    let ask = |key: &str| json!(["get_config_file", {"run_id": "$RUN", "file_key": key}]);
    let asked = json!([ask("docs/handbook.md"), ask("docs/other.md"), ask("greenroom.toml")]);
    let told = stage.told("greedy", "c1", &asked).await;
    assert_eq!(told[0]["ok"], json!({"file_base64": "IyBXaGFsZXMK"}), "{told}");
    assert_eq!((&told[1]["code"], &told[2]["code"]), (&json!("not_found"), &json!("not_found")));
}
