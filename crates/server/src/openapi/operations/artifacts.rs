//! Upload and download.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![upload(), download(), metadata(), linked()]
}

fn upload() -> Operation {
    let mut upload = Operation::post(
        "/v1/artifacts",
        "upload_artifact",
        "artifacts",
        "Store a file\nThe response comes once it is stored. `Content-Type` is checked against the content; \
         without one it is detected.",
    )
    .takes(&["workspace_id", "name", "for_conversation", "expires_in_s"])
    .answers("201", json_body("The artifact.", by_ref("schemas", "ArtifactView")))
    .refuses(&["408", "413"]);
    let link = json!({"operationId": "download_artifact",
        "parameters": {"id": "$response.body#/artifact_id"}});
    upload.described["responses"]["201"]["links"] = json!({"download": link});
    upload.described["requestBody"] = json!({"required": false,
        "description": "The bytes, with any `Content-Type`; without any, the file is empty.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}});
    upload
}

fn download() -> Operation {
    Operation::get(
        "/v1/artifacts/{id}",
        "download_artifact",
        "artifacts",
        "The bytes of an artifact\nAs an attachment, whole or one range. A token limited to some agents sees the \
         artifacts that their runs created or received.",
    )
    .takes(&["artifact_id_in_path", "workspace_id", "range", "if_range", "if_none_match"])
    .answers("200", bytes("All bytes."))
    .answers("206", bytes("The requested range, as in `Content-Range`."))
    .answers("304", json!({"description": "Not modified.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")}}))
    .refuses(&["404", "416"])
}

fn metadata() -> Operation {
    Operation::get(
        "/v1/artifacts/{id}/metadata",
        "get_artifact",
        "artifacts",
        "Metadata of an artifact",
    )
    .takes(&["artifact_id_in_path", "workspace_id"])
    .answers("200", json_body("The artifact.", by_ref("schemas", "ArtifactView")))
    .refuses(&["404"])
}

fn linked() -> Operation {
    Operation::get(
        "/v1/files/{id}",
        "download_file",
        "artifacts",
        "The bytes behind an address that a surface was given\nWithout a token: the address is signed and expires.",
    )
    .open()
    .takes(&["file_token_in_path", "range", "if_range", "if_none_match"])
    .answers("200", bytes("All bytes."))
    .answers("206", bytes("The requested range, as in `Content-Range`."))
    .answers("304", json!({"description": "Not modified.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")}}))
    .refuses(&["400", "404", "416"])
}

fn bytes(about: &str) -> Value {
    // Generators do not know `*/*`; the type is that of the artifact.
    let content = json!({"type": "string", "format": "binary"});
    json!({"description": about,
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id"),
            "ETag": {"required": true, "schema": {"type": "string"}},
            "Content-Disposition": {"required": true, "schema": {"type": "string"}}},
        "content": {"application/octet-stream": {"schema": content}, "*/*": {"schema": content}}})
}
