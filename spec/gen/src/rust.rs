use crate::model::Spec;
pub fn types(_: &Spec) -> String { String::new() }
