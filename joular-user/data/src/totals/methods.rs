//! Defines what a method is in a run's sums, and how it is called.

use std::sync::Arc;

use super::{Ranking, Tally};
use crate::{
    attribution::window_report::Share,
    model::{
        frame::{Frame, FrameKind, Marker},
        target_text::TargetText,
    },
    text::signature::{Method, told_apart},
};

/// A method, however it ran and at whatever line, as in reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodKey {
    /// With its class, if it has one.
    pub name: TargetText,
    pub signature: Option<TargetText>,
    pub module: Option<TargetText>,
}

impl MethodKey {
    pub(super) fn of(frame: &Frame) -> Self {
        Self { name: frame.method(), signature: frame.signature.clone(), module: frame.module.clone() }
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

/// Methods are shared with whoever else keeps them: a run has thousands, in several small blocks each, and blocks that stay
/// keep whole pages from being given back.
impl Ranking<Arc<MethodKey>> {
    pub(super) fn add_of(&mut self, frame: &Frame, share: Share) {
        let key = MethodKey::of(frame);
        match self.entries.get_mut(&key) {
            Some(tally) => tally.add(share),
            None => self.add(Arc::new(key), share),
        }
    }

    /// The method as it is kept here, or a new one.
    pub(super) fn shared(&self, key: MethodKey) -> Arc<MethodKey> {
        self.entries.get_key_value(&key).map_or_else(|| Arc::new(key), |(known, _)| Arc::clone(known))
    }

    /// As [`Self::ranked`], with names that tell overloads apart.
    pub fn named(&self) -> Vec<(TargetText, &MethodKey, &Tally)> {
        let ranked = self.ranked();
        let methods = ranked.iter().map(|(key, _)| Method {
            name: &key.name,
            signature: key.signature.as_ref(),
            module: key.module.as_ref(),
        });
        let names = told_apart(&methods.collect::<Vec<_>>());
        names.into_iter().zip(ranked).map(|(name, (key, tally))| (name, &**key, tally)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::MicroJoules;

    #[test]
    fn overloads_are_methods_of_their_own() {
        let mut ranking = Ranking::new(8);
        let key = |name: &str, signature: Option<&str>| MethodKey {
            name: name.into(),
            signature: signature.map(Into::into),
            module: None,
        };
        ranking.add(Arc::new(key("A.put", Some("(I)V"))), share(3));
        ranking.add(Arc::new(key("A.put", Some("(J)V"))), share(2));
        ranking.add(Arc::new(key("A.get", Some("()V"))), share(1));
        let names: Vec<TargetText> = ranking.named().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["A.put(int)", "A.put(long)", "A.get"]);
    }

    fn share(energy: u64) -> Share {
        Share { energy: MicroJoules(energy), cpu_ns: 1, samples: 1, ..Share::default() }
    }
}
