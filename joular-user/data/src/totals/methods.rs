//! Defines what a method is in a run's sums, and how it is called.

use std::sync::Arc;

use super::{Ranking, Tally};
use crate::{
    model::{
        frame::{Frame, FrameKind, Marker},
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
    pub(super) fn of(frame: &Frame) -> Self {
        let mut text = frame.method().into_raw();
        let name_end = text.len();
        text.push_str(frame.signature.as_ref().map_or("", TargetText::raw));
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

    /// As [`Self::ranked`], with names that tell overloads apart.
    pub fn named(&self) -> Vec<(TargetText, &MethodKey, &Tally)> {
        let ranked = self.ranked();
        let methods =
            ranked.iter().map(|(key, _)| Method { name: key.name(), signature: key.signature(), module: key.module() });
        let names = told_apart(&methods.collect::<Vec<_>>());
        names.into_iter().zip(ranked).map(|(name, (key, tally))| (name, key, tally)).collect()
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
        let names: Vec<TargetText> = ranking.named().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["A.put(int)", "A.put(long)", "A.get"]);
    }

    fn share(energy: u64) -> Share {
        Share { energy: MicroJoules(energy), cpu_ns: 1, samples: 1, ..Share::default() }
    }
}
