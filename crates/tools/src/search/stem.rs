//! English words without their endings.
//!
//! Invariant: crude, but the same for tools and queries: forms of a word have the same stem.

/// A word without its ending.
pub(super) fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    let cut = |ending: &str, keep: usize| {
        word.strip_suffix(ending).filter(|rest| rest.chars().count() >= keep).map(str::to_owned)
    };
    if let Some(rest) = cut("ies", 2) {
        return format!("{rest}y");
    }
    for (ending, keep) in [("ings", 3), ("ing", 3), ("ed", 3)] {
        if let Some(rest) = cut(ending, keep).filter(|rest| has_vowel(rest)) {
            return without_e(undoubled(rest));
        }
    }
    for ending in ["ments", "ment", "ions", "ion"] {
        if let Some(rest) = cut(ending, 5) {
            return without_e(rest);
        }
    }
    for ending in ["sses", "shes", "ches", "xes"] {
        if let Some(rest) = cut(ending, 2) {
            return format!("{rest}{}", &ending[..ending.len() - 2]);
        }
    }
    match cut("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        Some(rest) => without_e(rest),
        None => without_e(word.clone()),
    }
}

/// `string` and `thing` are not inflected forms.
fn has_vowel(word: &str) -> bool {
    word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// `stopped` is a form of `stop`, `pulled` is one of `pull`.
fn undoubled(word: String) -> String {
    let mut chars = word.chars().rev();
    match (chars.next(), chars.next()) {
        (Some(a), Some(b)) if a == b && !matches!(a, 'l' | 's' | 'z') => {
            word[..word.len() - a.len_utf8()].to_owned()
        }
        _ => word,
    }
}

/// `create`, `created` and `creating` become `creat`.
fn without_e(word: String) -> String {
    match word.strip_suffix('e').filter(|rest| rest.chars().count() >= 3) {
        Some(rest) => rest.to_owned(),
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        for forms in [
            vec!["create", "creates", "created", "creating", "creation"],
            vec!["file", "files"],
            vec!["query", "queries"],
            vec!["search", "searches", "searching", "searched"],
            vec!["stop", "stopped", "stopping"],
            vec!["process", "processes"],
            vec!["email", "emails", "emailed"],
            vec!["deploy", "deploys", "deployment", "deployments"],
            vec!["translate", "translation", "translations"],
            vec!["set", "setting", "settings"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        assert_ne!(stem("status"), stem("statu"));
        assert_eq!(stem("string"), "string");
    }
}
