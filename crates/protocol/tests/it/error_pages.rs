//! Every public error code has a page in `docs/errors/`, and the index lists it.

use greenroom_protocol::ErrorCode;
use greenroom_protocol::error::run_code;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let index = fs::read_to_string(folder.join("README.md")).expect("the index exists");
    let loops = format!("{}*", run_code::LOOP_PREFIX);
    let codes: BTreeSet<String> = ErrorCode::ALL
        .into_iter()
        .map(ErrorCode::as_str)
        .chain(run_code::ALL)
        .map(str::to_owned)
        .chain([loops])
        .collect();
    let mut expected = BTreeSet::from(["README.md", "tools.md"].map(str::to_owned));
    for code in codes {
        let file = format!("{}.md", code.trim_end_matches(".*"));
        let page = fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert!(
            page.starts_with(&format!("# `{code}`\n")),
            "docs/errors/{file} is the page of `{code}`"
        );
        for part in ["\n## What happened\n", "\n## Why\n", "\n## What to do\n"] {
            assert!(page.contains(part), "docs/errors/{file} has no part `{}`", part.trim());
        }
        assert!(index.contains(&format!("[`{code}`]({file})")), "the index names `{code}`");
        expected.insert(file);
    }
    let kept: BTreeSet<String> = fs::read_dir(folder)
        .expect("docs/errors exists")
        .map(|entry| entry.expect("docs/errors can be listed").file_name())
        .map(|name| name.into_string().expect("file names are UTF-8"))
        .collect();
    assert_eq!(kept, expected, "docs/errors has pages that no code stands behind");
}
