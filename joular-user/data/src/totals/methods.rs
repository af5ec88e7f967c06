//! Defines what a method is in a run's sums, and how it is called.

use std::{cmp::Reverse, collections::HashSet, iter, sync::Arc};

use super::{Ranking, Tally};
use crate::{
    model::{
        frame::{Frame, FrameKind, Marker},
        generated,
        target_text::TargetText,
    },
    text::signature::{Method, told_apart},
};

/// A method, however it ran and at whatever line, as in reports. Whoever keeps it shares one block of memory: a run has
/// thousands of methods, and a small block that stays keeps its whole page from being given back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodKey {
    /// Its name, its signature and its module, one behind the other.
    text: Arc<str>,
    name_end: usize,
    signature_end: usize,
}

impl MethodKey {
    pub fn of(frame: &Frame) -> Self {
        let mut text = match &frame.class {
            Some(class) => format!("{}.{}", generated::family(class.raw()), frame.name.raw()),
            None => frame.name.raw().to_owned(),
        };
        let name_end = text.len();
        text.push_str(&frame.signature.as_ref().map_or("".into(), |text| generated::families(text.raw())));
        let signature_end = text.len();
        text.push_str(frame.module.as_ref().map_or("", TargetText::raw));
        Self { text: text.into(), name_end, signature_end }
    }

    /// With its class, if it has one.
    pub fn name(&self) -> &str {
        self.text.get(..self.name_end).unwrap_or_default()
    }

    pub fn signature(&self) -> Option<&str> {
        self.text.get(self.name_end..self.signature_end).filter(|text| !text.is_empty())
    }

    pub fn module(&self) -> Option<&str> {
        self.text.get(self.signature_end..).filter(|text| !text.is_empty())
    }

    /// What tells it from methods of the same name.
    pub fn method(&self) -> Method<'_> {
        Method { name: self.name(), signature: self.signature(), module: self.module() }
    }
}

/// What stands for a frame of which nothing is known.
pub(super) fn marker_name(frame: &Frame) -> Option<&str> {
    match frame.kind {
        _ if frame.is_unresolved() => Some(Marker::Unresolved.name()),
        FrameKind::Marker => Some(frame.name.raw()),
        _ => None,
    }
}

impl Ranking<MethodKey> {
    /// The method as it is kept here, or a new one.
    pub(super) fn shared(&self, key: MethodKey) -> MethodKey {
        self.entries.get_key_value(&key).map_or(key, |(known, _)| known.clone())
    }

    /// The first of [`Self::ranked`], with names that tell overloads apart.
    pub fn named(&self, most: usize) -> Vec<(TargetText, &MethodKey, &Tally)> {
        let first: Vec<_> = self.ranked().into_iter().take(most).collect();
        let names = self.names(first.iter().map(|(key, _)| *key));
        names.into_iter().zip(first).map(|(name, (key, tally))| (name, key, tally)).collect()
    }

    /// The method that has most of the latest window, if any has something of it.
    pub fn top_now(&self) -> Option<(TargetText, &Tally)> {
        let entries = self.entries.iter().filter(|(_, tally)| tally.energy_now.0 > 0);
        let (key, tally) = entries.max_by_key(|(key, tally)| (tally.energy_now, Reverse(*key)))?;
        Some((self.names(iter::once(key)).pop()?, tally))
    }

    /// Names of some methods. Of the thousands of others only those of equal names matter.
    fn names<'a>(&'a self, shown: impl Iterator<Item = &'a MethodKey> + Clone) -> Vec<TargetText> {
        let names: HashSet<&str> = shown.clone().map(MethodKey::name).collect();
        let namesakes = self.entries.keys().filter(|key| names.contains(key.name()));
        let count = shown.clone().count();
        let methods: Vec<Method<'_>> = shown.chain(namesakes).map(MethodKey::method).collect();
        told_apart(&methods).into_iter().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::window_report::Share, model::units::MicroJoules};

    #[test]
    fn a_method_has_its_parts() {
        let parts = |class: Option<&str>, signature: Option<&str>, module: Option<&str>| {
            let [class, signature, module] = [class, signature, module].map(|part| part.map(TargetText::from));
            let key = MethodKey::of(&Frame { class, signature, module, ..Frame::new(FrameKind::Compiled, "put") });
            let text = |part: Option<&str>| part.map(str::to_owned);
            (key.name().to_owned(), text(key.signature()), text(key.module()))
        };
        let text = |part: &str| Some(part.to_owned());
        assert_eq!(parts(Some("A"), Some("(I)V"), Some("m")), ("A.put".to_owned(), text("(I)V"), text("m")));
        assert_eq!(parts(None, None, Some("m")), ("put".to_owned(), None, text("m")));
        assert_eq!(parts(None, Some("m"), None), ("put".to_owned(), text("m"), None));
    }

    #[test]
    fn overloads_are_methods_of_their_own() {
        let mut ranking = Ranking::new(8);
        let key = |name: &str, signature: &str| {
            MethodKey::of(&Frame { signature: Some(signature.into()), ..Frame::new(FrameKind::Compiled, name) })
        };
        ranking.add(key("A.put", "(I)V"), share(3));
        ranking.add(key("A.put", "(J)V"), share(2));
        ranking.add(key("A.get", "()V"), share(1));
        let names = |most| ranking.named(most).into_iter().map(|(name, ..)| name).collect::<Vec<TargetText>>();
        assert_eq!(names(9), ["A.put(int)", "A.put(long)", "A.get"]);
        assert_eq!(names(1), ["A.put(int)"], "those that are not shown count");
        assert_eq!(ranking.top_now().map(|(name, tally)| (name, tally.energy.0)), Some(("A.put(int)".into(), 3)));
        ranking.start_window();
        assert!(ranking.top_now().is_none());
    }

    fn share(energy: u64) -> Share {
        Share { energy: MicroJoules(energy), cpu_ns: 1, samples: 1, ..Share::default() }
    }
}
