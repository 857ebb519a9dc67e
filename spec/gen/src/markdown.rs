use crate::model::Spec;
pub fn pages(_: &Spec) -> Vec<(&'static str, String)> { vec![] }
