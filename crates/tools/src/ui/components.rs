//! A builder for a list of A2UI components.
//!
//! Invariant: component ids are unique; a child is in the list that names it.

use serde_json::{Value, json};

/// The components of one surface.
#[derive(Debug, Default)]
pub(super) struct Components(Vec<Value>);

impl Components {
    pub(super) fn into_value(self) -> Value {
        Value::Array(self.0)
    }

    /// Adds a component; returns its id for the parent.
    fn add(&mut self, id: &str, component: &str, mut properties: Value) -> String {
        properties["id"] = id.into();
        properties["component"] = component.into();
        self.0.push(properties);
        id.to_owned()
    }

    /// A fixed text.
    pub(super) fn words(&mut self, id: &str, text: &str, variant: &str) -> String {
        self.add(id, "Text", json!({"text": text, "variant": variant}))
    }

    /// A text of the data model; within a list the path starts at the item.
    pub(super) fn text(&mut self, id: &str, path: &str, variant: &str) -> String {
        self.add(id, "Text", json!({"text": {"path": path}, "variant": variant}))
    }

    pub(super) fn icon(&mut self, id: &str, name: &str) -> String {
        self.add(id, "Icon", json!({"name": name}))
    }

    pub(super) fn column(&mut self, id: &str, children: Vec<String>) -> String {
        self.add(id, "Column", json!({"children": children}))
    }

    pub(super) fn row(&mut self, id: &str, children: Vec<String>) -> String {
        self.add(id, "Row", json!({"children": children, "align": "center"}))
    }

    pub(super) fn divider(&mut self, id: &str) -> String {
        self.add(id, "Divider", json!({}))
    }

    /// One `item` for every entry at `path`.
    pub(super) fn list(&mut self, id: &str, item: &str, path: &str) -> String {
        self.add(id, "List", json!({"children": {"componentId": item, "path": path}}))
    }

    /// A card, which is always the root.
    pub(super) fn card(&mut self, child: String) {
        self.add("root", "Card", json!({"child": child}));
    }

    /// A button that requests a method by its name, e.g. `calendar.accept_invite`.
    pub(super) fn button(&mut self, id: &str, label: &str, method: &str, context: Value) -> String {
        let child = self.words(&format!("{id}-label"), label, "body");
        let action = json!({"event": {"name": method, "context": context}});
        self.add(id, "Button", json!({"child": child, "action": action}))
    }
}
