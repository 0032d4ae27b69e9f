//! Bytes in and out.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![upload(), download(), metadata()]
}

fn upload() -> Operation {
    let mut upload = Operation::post(
        "/v1/artifacts",
        "upload_artifact",
        "artifacts",
        "Keep bytes\nThe answer comes once they are stored. `Content-Type` is compared with what the bytes \
         look like; without one it is found out.",
    )
    .takes(&["workspace_id", "name", "for_conversation", "expires_in_s"])
    .answers("201", json_body("The artifact.", by_ref("schemas", "ArtifactView")))
    .refuses(&["408", "413"]);
    let link = json!({"operationId": "download_artifact",
        "parameters": {"id": "$response.body#/artifact_id"}});
    upload.described["responses"]["201"]["links"] = json!({"download": link});
    upload.described["requestBody"] = json!({"required": true,
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}});
    upload
}

fn download() -> Operation {
    Operation::get(
        "/v1/artifacts/{id}",
        "download_artifact",
        "artifacts",
        "The bytes of an artifact\nAs an attachment, whole or one range of them. A token for some agents gets \
         what their runs made or were given.",
    )
    .takes(&["artifact_id_in_path", "workspace_id", "range", "if_range", "if_none_match"])
    .answers("200", bytes("All bytes."))
    .answers("206", bytes("The range of bytes that was asked for, as `Content-Range` says."))
    .answers("304", json!({"description": "The bytes are those that are known.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")}}))
    .refuses(&["404", "416"])
}

fn metadata() -> Operation {
    Operation::get(
        "/v1/artifacts/{id}/metadata",
        "get_artifact",
        "artifacts",
        "What is known of an artifact",
    )
    .takes(&["artifact_id_in_path", "workspace_id"])
    .answers("200", json_body("The artifact.", by_ref("schemas", "ArtifactView")))
    .refuses(&["404"])
}

fn bytes(about: &str) -> Value {
    json!({"description": about,
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id"),
            "ETag": {"required": true, "schema": {"type": "string"}},
            "Content-Disposition": {"required": true, "schema": {"type": "string"}}},
        "content": {"*/*": {"schema": {"description": "Bytes of any kind, also none."}}}})
}
