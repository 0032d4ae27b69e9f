//! Applies a patch to the client's state (RFC 6902), as the client does.
//!
//! Invariant: a patch that does not apply changes nothing.

use serde_json::Value;

/// The state after the patch; `None` if it does not apply.
pub(crate) fn apply(state: &Value, operations: &[Value]) -> Option<Value> {
    let mut state = state.clone();
    for operation in operations {
        let path = operation["path"].as_str()?;
        match operation["op"].as_str()? {
            "add" => add(&mut state, path, operation.get("value")?.clone())?,
            "remove" => drop(remove(&mut state, path)?),
            "replace" => *state.pointer_mut(path)? = operation.get("value")?.clone(),
            "move" => {
                let value = remove(&mut state, operation["from"].as_str()?)?;
                add(&mut state, path, value)?;
            }
            "copy" => {
                let value = state.pointer(operation["from"].as_str()?)?.clone();
                add(&mut state, path, value)?;
            }
            "test" => (state.pointer(path)? == operation.get("value")?).then_some(())?,
            _ => return None,
        }
    }
    Some(state)
}

fn add(state: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((parent, key)) = path.rsplit_once('/') else {
        *state = value;
        return path.is_empty().then_some(());
    };
    match state.pointer_mut(parent)? {
        Value::Object(fields) => drop(fields.insert(unescaped(key), value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(key).filter(|index| *index <= list.len())?;
            list.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(state: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = path.rsplit_once('/')?;
    match state.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&unescaped(key)),
        Value::Array(list) => {
            let index = index(key).filter(|index| *index < list.len())?;
            Some(list.remove(index))
        }
        _ => None,
    }
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// Without a sign and leading zeros.
fn index(key: &str) -> Option<usize> {
    let index = key.parse().ok()?;
    (usize::to_string(&index) == key).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(state: Value, operations: Value) -> Option<Value> {
        apply(&state, operations.as_array().unwrap())
    }

    #[test]
    fn every_operation_is_applied() {
        let state = json!({"a": [1, 2], "b/c": {"~": 1}});
        for (operation, expected) in [
            (
                json!({"op": "add", "path": "/a/-", "value": 3}),
                json!({"a": [1, 2, 3], "b/c": {"~": 1}}),
            ),
            (
                json!({"op": "add", "path": "/a/0", "value": 0}),
                json!({"a": [0, 1, 2], "b/c": {"~": 1}}),
            ),
            (json!({"op": "remove", "path": "/a/1"}), json!({"a": [1], "b/c": {"~": 1}})),
            (
                json!({"op": "replace", "path": "/b~1c/~0", "value": 2}),
                json!({"a": [1, 2], "b/c": {"~": 2}}),
            ),
            (
                json!({"op": "move", "from": "/a", "path": "/d"}),
                json!({"d": [1, 2], "b/c": {"~": 1}}),
            ),
            (
                json!({"op": "copy", "from": "/a/0", "path": "/d"}),
                json!({"a": [1, 2], "d": 1, "b/c": {"~": 1}}),
            ),
            (json!({"op": "add", "path": "", "value": 1}), json!(1)),
            (json!({"op": "test", "path": "/a/0", "value": 1}), state.clone()),
        ] {
            assert_eq!(patched(state.clone(), json!([operation])), Some(expected), "{operation}");
        }
    }

    #[test]
    fn a_patch_that_does_not_apply_is_refused() {
        for operation in [
            json!({"op": "remove", "path": "/x"}),
            json!({"op": "replace", "path": "/x", "value": 1}),
            json!({"op": "add", "path": "/x/y", "value": 1}),
            json!({"op": "add", "path": "/a/9", "value": 1}),
            json!({"op": "add", "path": "/a/01", "value": 1}),
            json!({"op": "add", "path": "x", "value": 1}),
            json!({"op": "add", "path": "/x"}),
            json!({"op": "test", "path": "/a/0", "value": 2}),
            json!({"op": "other", "path": "/a"}),
            json!("x"),
        ] {
            assert_eq!(patched(json!({"a": [1]}), json!([operation])), None, "{operation}");
        }
    }
}
