//! Keeps texts, functions and places in code, each once and known by its place in a table. pprof
//! and OTLP, which comes from it, share this.

use std::collections::HashMap;

use super::module;
use crate::{
    model::{frame::Frame, target_text::TargetText},
    report::profile::{FrameIndex, Paths},
};

/// Texts by number; 0 is the empty one.
#[derive(Debug)]
pub(super) struct Strings {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self { numbers: HashMap::from([(String::new(), 0)]), texts: vec![String::new()] }
    }

    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = place(self.texts.len());
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// A method, by numbers of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) name: u32,
    /// With the signature, if there is one.
    pub(super) system_name: u32,
    pub(super) file: u32,
}

/// A frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    /// Place in [`Dictionary::functions`].
    pub(super) function: u32,
    /// Place in [`Dictionary::modules`].
    pub(super) module: u32,
    pub(super) line: Option<u32>,
    pub(super) frame: FrameIndex,
}

/// Strings, functions and locations of an export, each once. Frames are added when they are asked
/// for.
#[derive(Debug)]
pub(super) struct Dictionary {
    pub(super) strings: Strings,
    pub(super) functions: Vec<Function>,
    function_places: HashMap<Function, u32>,
    /// Libraries, executables and kernel modules by the number of their name.
    pub(super) modules: Vec<u32>,
    module_places: HashMap<u32, u32>,
    pub(super) locations: Vec<Location>,
    location_places: HashMap<FrameIndex, u32>,
}

impl Dictionary {
    pub(super) fn new() -> Self {
        Self {
            strings: Strings::new(),
            functions: Vec::new(),
            function_places: HashMap::new(),
            modules: Vec::new(),
            module_places: HashMap::new(),
            locations: Vec::new(),
            location_places: HashMap::new(),
        }
    }

    /// Place of a frame in [`Dictionary::locations`].
    pub(super) fn location(&mut self, paths: &Paths, index: FrameIndex) -> u32 {
        if let Some(location) = self.location_places.get(&index) {
            return *location;
        }
        let frame = paths.frame(index);
        let function = self.function(frame);
        let module = self.strings.number(module(frame));
        let modules = &mut self.modules;
        let module = *self.module_places.entry(module).or_insert_with(|| {
            modules.push(module);
            place(modules.len() - 1)
        });
        let location = place(self.locations.len());
        self.locations.push(Location { function, module, line: frame.line, frame: index });
        self.location_places.insert(index, location);
        location
    }

    fn function(&mut self, frame: &Frame) -> u32 {
        let method = frame.method();
        let [signature, file] = [&frame.signature, &frame.file].map(|text| text.as_ref().map_or("", TargetText::raw));
        let name = method.raw();
        let function = Function {
            system_name: self.strings.number(&format!("{name}{signature}")),
            name: self.strings.number(name),
            file: self.strings.number(file),
        };
        let functions = &mut self.functions;
        *self.function_places.entry(function).or_insert_with(|| {
            functions.push(function);
            place(functions.len() - 1)
        })
    }
}

/// 2^32 of anything would need terabytes before this saturates.
fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
