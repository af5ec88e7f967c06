//! Takes the keys of a manifest one by one. A key that nobody takes is an error: what is new in a manifest must not be
//! left out of the pod without a word.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

/// The keys of an object that nobody has taken yet.
pub struct Fields {
    /// Where the object is, for messages.
    at: String,
    left: Map<String, Value>,
}

impl Fields {
    /// Fails unless `read` takes every key.
    pub fn read<T>(at: &str, object: Value, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Value::Object(left) = object else { bail!("{at} is not an object: {object}") };
        let mut fields = Self { at: at.to_owned(), left };
        let result = read(&mut fields)?;
        let names: Vec<&String> = fields.left.keys().collect();
        ensure!(names.is_empty(), "{at} has keys that the tests' kubelet does not know: {names:?}");
        Ok(result)
    }

    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.at)
    }

    pub fn maybe(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key)
    }

    fn take(&mut self, key: &str) -> Result<Value> {
        self.maybe(key).with_context(|| format!("there is no {}", self.path(key)))
    }

    pub fn text(&mut self, key: &str) -> Result<String> {
        let value = self.take(key)?;
        value.as_str().map(str::to_owned).with_context(|| format!("{} is not a text: {value}", self.path(key)))
    }

    pub fn maybe_text(&mut self, key: &str) -> Result<Option<String>> {
        if self.left.contains_key(key) { self.text(key).map(Some) } else { Ok(None) }
    }

    pub fn number_or(&mut self, key: &str, default: u32) -> Result<u32> {
        let Some(value) = self.maybe(key) else { return Ok(default) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.with_context(|| format!("{} is not such a number: {value}", self.path(key)))
    }

    pub fn flag_or(&mut self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.maybe(key) else { return Ok(default) };
        value.as_bool().with_context(|| format!("{} is neither true nor false: {value}", self.path(key)))
    }

    pub fn texts(&mut self, key: &str) -> Result<Vec<String>> {
        let value = self.take(key)?;
        let texts = value.as_array().and_then(|list| list.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        texts.with_context(|| format!("{} is not a list of texts: {value}", self.path(key)))
    }

    /// Names and their values, whatever they are.
    pub fn labels(&mut self, key: &str) -> Result<BTreeMap<String, String>> {
        let value = self.take(key)?;
        let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let labels = value.as_object().and_then(|labels| labels.iter().map(label).collect());
        labels.with_context(|| format!("{} is not made of texts: {value}", self.path(key)))
    }

    pub fn object<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let value = self.take(key)?;
        Self::read(&self.path(key), value, read)
    }

    pub fn maybe_object<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.left.contains_key(key) { self.object(key, read).map(Some) } else { Ok(None) }
    }

    pub fn objects<T>(&mut self, key: &str, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let (value, path) = (self.take(key)?, self.path(key));
        let Value::Array(list) = value else { bail!("{path} is not a list: {value}") };
        let each = |(number, object)| Self::read(&format!("{path}[{number}]"), object, &mut read);
        list.into_iter().enumerate().map(each).collect()
    }

    /// Takes a key that can have one value only, as far as the tests' kubelet knows.
    pub fn expect(&mut self, key: &str, expected: impl Into<Value>) -> Result<()> {
        let (value, expected) = (self.take(key)?, expected.into());
        ensure!(value == expected, "{} is {value}, and the tests' kubelet knows {expected} only", self.path(key));
        Ok(())
    }

    /// Takes keys that a kubelet does not read.
    pub fn ignore(&mut self, keys: &[&str]) {
        for key in keys {
            self.left.remove(*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(object: Value) -> Result<Vec<String>> {
        Fields::read("pod", object, |pod| pod.objects("volumes", |volume| volume.text("name")))
    }

    #[test]
    fn all_keys_are_taken_or_the_one_that_is_left_is_named() -> Result<()> {
        assert_eq!(names(json!({"volumes": [{"name": "a"}, {"name": "b"}]}))?, ["a", "b"]);
        for (object, expected) in [
            (json!({"volumes": [], "new": 1}), "pod has keys that the tests' kubelet does not know: [\"new\"]"),
            (json!({"volumes": [{"name": "a"}, {"name": "b", "csi": {}}]}), "pod.volumes[1] has keys"),
            (json!({"volumes": [{}]}), "there is no pod.volumes[0].name"),
            (json!({"volumes": [{"name": 7}]}), "pod.volumes[0].name is not a text: 7"),
            (json!({"volumes": {}}), "pod.volumes is not a list: {}"),
        ] {
            let said = names(object).map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.starts_with(expected)), "{said:?}, not {expected}");
        }
        Ok(())
    }
}
