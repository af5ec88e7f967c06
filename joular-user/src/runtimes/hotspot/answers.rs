//! Keeps answers by frame word, as long as they are asked for and there is room.
//!
//! There are two halves. An answer that is asked for moves to the young half. When that is full it
//! becomes the old half, and answers that were not asked for since are forgotten.

use std::{collections::HashMap, sync::Arc};

use joular_data::model::{
    frame::{Frame, FrameKind},
    target_text::TargetText,
};
use joular_ebpf::abi::{FrameRef, FrameWord};

use super::{
    line_table::LineTable,
    method::{Method, Names},
};

/// Levels in one half: with their names some megabytes.
const MAX_LEVELS: usize = 1 << 16;

/// A frame whose names are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    pub names: Arc<Names>,
    pub kind: FrameKind,
    pub line: Option<u32>,
}

impl Level {
    pub fn of(method: &Method, kind: FrameKind, bci: u16) -> Self {
        let line = LineTable::line(&method.lines, bci);
        Self { names: Arc::clone(&method.names), kind, line }
    }

    pub fn stub(name: &str) -> Self {
        let names = Names { name: name.into(), ..Names::default() };
        Self { names: Arc::new(names), kind: FrameKind::Stub, line: None }
    }

    /// A compiler at work on a method.
    pub fn compiling(method: &Method) -> Self {
        let class = method.names.class.as_ref().map_or("", TargetText::raw);
        Self { kind: FrameKind::Vm, ..Self::stub(&format!("compiling {class}.{}", method.names.name.raw())) }
    }

    pub fn frame(&self) -> Frame {
        let Names { class, name, signature, file } = &*self.names;
        Frame {
            class: class.clone(),
            signature: signature.clone(),
            file: file.clone(),
            line: self.line,
            ..Frame::new(self.kind, name.clone())
        }
    }
}

/// The meanings of a JVM's frame words.
#[derive(Debug, Default)]
pub struct Answers {
    young: HashMap<FrameWord, Arc<[Level]>>,
    young_levels: usize,
    old: HashMap<FrameWord, Arc<[Level]>>,
}

impl Answers {
    pub fn get(&mut self, word: FrameWord) -> Option<Arc<[Level]>> {
        if let Some(known) = self.young.get(&word) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&word)?;
        self.insert(word, Arc::clone(&known));
        Some(known)
    }

    pub fn put(&mut self, word: FrameWord, levels: Vec<Level>) {
        self.insert(word, levels.into());
    }

    fn insert(&mut self, word: FrameWord, levels: Arc<[Level]>) {
        if self.young_levels >= MAX_LEVELS {
            self.old = std::mem::take(&mut self.young);
            self.young_levels = 0;
        }
        self.young_levels += levels.len() + 1;
        self.young.insert(word, levels);
    }

    /// Ends a window. Stubs and adapters are forgotten: they have no id that would show that they
    /// are others now.
    pub fn end_window(&mut self) {
        self.retain(|frame| !matches!(frame, FrameRef::Blob { .. }));
    }

    pub fn forget_interpreted(&mut self) {
        self.retain(|frame| !matches!(frame, FrameRef::Interpreted { .. } | FrameRef::Compiling { .. }));
    }

    fn retain(&mut self, keep: impl Fn(FrameRef) -> bool) {
        for half in [&mut self.young, &mut self.old] {
            half.retain(|word, _| keep(word.decode()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays() {
        let mut answers = Answers::default();
        let hot = FrameWord::compiled_call(1, 1);
        answers.put(hot, vec![Level::stub("hot")]);
        for id in 2..u32::try_from(MAX_LEVELS * 2).unwrap() {
            answers.put(FrameWord::compiled_call(id, 1), vec![Level::stub("cold")]);
            assert!(id % 100 != 0 || answers.get(hot).is_some());
        }
        assert_eq!(answers.get(hot).unwrap()[0].frame().name, "hot");
        assert_eq!(answers.get(FrameWord::compiled_call(2, 1)), None);
        assert!(answers.young.len() + answers.old.len() <= MAX_LEVELS);
    }

    #[test]
    fn what_has_no_id_is_forgotten() {
        let mut answers = Answers::default();
        let words = [FrameWord::blob(1), FrameWord::interpreted(8, 0), FrameWord::compiled_at(1, 1)];
        let kept = |answers: &mut Answers| words.map(|word| answers.get(word).is_some());
        words.iter().for_each(|&word| answers.put(word, Vec::new()));
        answers.end_window();
        assert_eq!(kept(&mut answers), [false, true, true]);
        answers.forget_interpreted();
        assert_eq!(kept(&mut answers), [false, false, true]);
    }
}
