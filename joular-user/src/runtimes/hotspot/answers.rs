//! Keeps what frame words stand for.

use std::sync::Arc;

use joular_data::model::{
    frame::{Frame, FrameKind},
    target_text::TargetText,
};
use joular_ebpf::abi::{FrameRef, FrameWord};

use super::{
    line_table::LineTable,
    method::{Method, Names},
    recent::{Measured, Recent},
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

impl Measured for Arc<[Level]> {
    fn size(&self) -> usize {
        self.len() + 1
    }
}

/// The meanings of a JVM's frame words.
#[derive(Debug)]
pub struct Answers(Recent<FrameWord, Arc<[Level]>>);

impl Default for Answers {
    fn default() -> Self {
        Self(Recent::new(MAX_LEVELS))
    }
}

impl Answers {
    pub fn get(&mut self, word: FrameWord) -> Option<Arc<[Level]>> {
        self.0.get(word).map(Arc::clone)
    }

    pub fn put(&mut self, word: FrameWord, levels: Vec<Level>) {
        self.0.put(word, levels.into());
    }

    /// Ends a window. Stubs and adapters are forgotten: they have no id that would show that they
    /// are others now.
    pub fn end_window(&mut self) {
        self.0.retain(|word| !matches!(word.decode(), FrameRef::Blob { .. }));
        self.0.end_window();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_id_is_forgotten() {
        let mut answers = Answers::default();
        let words = [FrameWord::blob(1), FrameWord::interpreted(8, 0), FrameWord::compiled_at(1, 1)];
        let kept = |answers: &mut Answers| words.map(|word| answers.get(word).is_some());
        words.iter().for_each(|&word| answers.put(word, Vec::new()));
        answers.end_window();
        assert_eq!(kept(&mut answers), [false, true, true]);
    }
}
