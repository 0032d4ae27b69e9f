//! Skills of both sources: folders, and the notes on modules.
//!
//! Invariant: a skill of a folder stands over the notes on a module of its name.

use super::{Invocation, Toolbox};
use crate::ToolOutput;
use crate::skills::Card;
use serde_json::Value;
use std::collections::BTreeSet;

impl Toolbox {
    /// Every skill: those of folders, and one for each module that no folder explains.
    pub fn skills(&self) -> Vec<String> {
        let names: BTreeSet<String> =
            self.skills.names().into_iter().chain(self.modules.names()).collect();
        names.into_iter().collect()
    }

    pub fn cards(&self, names: &BTreeSet<String>) -> Vec<Card> {
        let of_folders = self.skills.cards(names);
        let is_explained = |name: &&String| of_folders.iter().any(|card| card.name == **name);
        let rest = names.iter().filter(|name| !is_explained(name));
        let of_modules: Vec<Card> = rest.filter_map(|name| self.modules.card(name)).collect();
        let mut cards = [of_folders, of_modules].concat();
        cards.sort_by(|one, other| one.name.cmp(&other.name));
        cards
    }

    /// Reads a skill of a folder, or the notes on a module.
    pub(super) fn read_skill(&self, call: &Invocation<'_>) -> ToolOutput {
        let text = |key: &str| call.args.get(key).and_then(Value::as_str);
        let name = text("skill").unwrap_or_default();
        let is_of_folder = self.skills.names().iter().any(|known| known == name);
        match self.modules.names().contains(name) && !is_of_folder && call.skills.contains(name) {
            true => self.modules.read_notes(name, text("path"), call.methods),
            false => self.skills.read(call.args, call.skills),
        }
    }
}
