//! Names native code: libjvm, libc, executables, the vDSO.
//!
//! What hundreds of JVMs share is read once. blazesym parses libjvm in 8 ms and more and holds
//! megabytes meanwhile; the answers are few and small. So the answers are kept, and a parsed file only
//! while questions about it keep coming.

use std::{collections::HashMap, fs::File, io, os::unix::fs::FileExt as _, path::Path, sync::Arc, time::Instant};

use blazesym::symbolize::{Input, Symbolizer, source::Elf, source::Source};
use joular_data::{
    caught::caught,
    model::{
        frame::{Frame, FrameKind},
        units::Pid,
    },
};

use super::{
    Notice,
    answers::Answers,
    demangle::demangled,
    files::{Copies, FileKey, FileUse, NewFile, OpenFiles},
};
use crate::{
    bounds::Bound,
    elf::{ElfError, image::ElfImage},
    procs::{
        deadline::{self, Pending, Progress},
        maps::{MappingKind, Maps},
        quota::Owner,
    },
    runtimes::is_library,
};

/// Files kept that no process uses any more.
const MAX_IDLE_FILES: usize = 64;
/// Windows without a question after which a parsed file is dropped.
const KEEP_PARSED_WINDOWS: u32 = 10;
/// Parsed files kept at the same time.
const MAX_PARSED: usize = 4;
/// Bytes kept of one name; templates can exceed any bound.
const MAX_NAME_BYTES: usize = 1024;
pub static NAMES: Bound =
    Bound::new("function_name_cut", MAX_NAME_BYTES as u64, "bytes of the name of a native function", "it is cut");
/// Files of which it is said what they lack: targets choose how many there are.
const MAX_NOTICES: usize = 16;
pub static NOTICES: Bound = Bound::new(
    "file_notices_not_given",
    MAX_NOTICES as u64,
    "lines about files that lack symbols or cannot be read",
    "the rest is not told",
);
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// A file as blazesym has parsed it.
#[derive(Debug)]
struct Parsed {
    image: ElfImage,
    symbolizer: Symbolizer,
    idle_windows: u32,
    /// When it was asked last, in questions.
    asked: u64,
}

#[derive(Debug)]
struct ElfFile {
    /// Who uses it; `None`: not one owner alone.
    owner: Option<Owner>,
    /// Its symbols, which are late.
    reading: Option<Pending<Result<ElfImage, ElfError>>>,
    parsed: Option<Parsed>,
    /// Whether parsing was tried, and need not be tried again.
    is_unreadable: bool,
    /// Whether what it lacks was said.
    is_noticed: bool,
    module: Arc<str>,
    answers: Answers,
}

/// All native files in use.
#[derive(Debug, Default)]
pub struct NativeSymbols {
    open: OpenFiles,
    files: HashMap<FileKey, ElfFile>,
    /// Files that could not be parsed.
    pub unreadable_files: u64,
    questions: u64,
    /// What the user should know of files, each said once.
    pub notices: Vec<Notice>,
    noticed: usize,
}

impl NativeSymbols {
    /// Takes a file into use for one more process.
    pub fn acquire(&mut self, file: NewFile, module: &str) -> Option<FileUse> {
        let owner = file.owner().cloned();
        let used = self.open.acquire(file, module)?;
        let file = self.files.entry(used.key).or_insert_with(|| ElfFile {
            owner: owner.clone(),
            reading: None,
            parsed: None,
            is_unreadable: false,
            is_noticed: false,
            module: module.into(),
            answers: Answers::default(),
        });
        if file.owner != owner {
            file.owner = None;
        }
        Some(used)
    }

    /// What is to be said of files and of who keeps them from being read.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let of_owners = deadline::notices().into_iter().map(|text| Notice { pid: None, text });
        std::mem::take(&mut self.notices).into_iter().chain(of_owners).collect()
    }

    /// One process less uses it.
    pub fn release(&mut self, used: FileUse, now: Instant) {
        self.open.release(used, now);
    }

    /// Finds the names at these file offsets, so that [`Self::frame`] has them.
    pub fn prepare(&mut self, key: FileKey, offsets: &[u64]) {
        // Of a file system that does not answer, one file is enough to wait for.
        let is_late = |(other, file): (&FileKey, &ElfFile)| {
            *other != key && other.device() == key.device() && file.reading.is_some()
        };
        let is_dead = self.files.iter().any(is_late);
        let Some(file) = self.files.get_mut(&key) else { return };
        let missing = file.answers.make_room(offsets);
        if missing.is_empty() || is_dead && file.parsed.is_none() {
            return;
        }
        let Some(source) = self.open.get(key) else { return };
        self.questions += 1;
        let no_names = vec![None; missing.len()];
        let names = if file.is_unreadable {
            no_names
        } else {
            match file.symbolize(source, &missing, self.questions) {
                Ok(Some(names)) => names,
                // They will be asked for again.
                Ok(None) => return,
                Err(_) => {
                    file.is_unreadable = true;
                    self.unreadable_files += 1;
                    no_names
                }
            }
        };
        if let Some(text) = file.take_notice() {
            if self.noticed < MAX_NOTICES {
                self.noticed += 1;
                self.notices.push(Notice { pid: None, text });
            } else {
                NOTICES.cut(1);
            }
        }
        for (offset, name) in missing.into_iter().zip(names) {
            file.answers.insert(offset, name.as_deref());
        }
        self.bound_parsed();
    }

    /// Drops the parsed file that was not asked for the longest time.
    fn bound_parsed(&mut self) {
        let parsed = || self.files.values().filter_map(|file| file.parsed.as_ref());
        if parsed().count() <= MAX_PARSED {
            return;
        }
        if let Some(oldest) = parsed().map(|parsed| parsed.asked).min() {
            for file in self.files.values_mut() {
                file.parsed.take_if(|parsed| parsed.asked == oldest);
            }
        }
    }

    /// Ends a window: drops parsed files that nothing was asked of, and closes files that nobody uses.
    pub fn pass_window(&mut self, now: Instant) {
        self.open.close_unused(now);
        if self.files.len() > MAX_IDLE_FILES {
            let open = self.open.keys();
            let idle = self.files.keys().filter(|key| !open.contains(key)).count();
            self.files.retain(|key, _| idle <= MAX_IDLE_FILES || open.contains(key));
        }
        for file in self.files.values_mut() {
            if let Some(parsed) = &mut file.parsed {
                parsed.idle_windows += 1;
            }
            if file.parsed.as_ref().is_some_and(|parsed| parsed.idle_windows > KEEP_PARSED_WINDOWS) {
                file.parsed = None;
            }
        }
    }

    /// The frame at a file offset. Where no symbol covers it, the frame still
    /// tells the module.
    pub fn frame(&self, key: FileKey, offset: u64) -> Option<Frame> {
        let file = self.files.get(&key)?;
        let name = file.answers.get(offset)?;
        Some(frame(&file.module, name))
    }

    /// The file itself, for whoever needs more of it than names.
    pub fn open(&self, key: FileKey) -> Option<Copies> {
        self.open.get(key)
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// A frame of native code; without a name it is named after its file.
pub fn frame(module: &str, name: Option<&str>) -> Frame {
    let kind = if is_library(module) { FrameKind::Vm } else { FrameKind::Native };
    match name {
        Some(name) => Frame { module: Some(module.into()), ..Frame::new(kind, name) },
        None => Frame::of_file(kind, module),
    }
}

impl ElfFile {
    /// Why methods in it have no names, if that is so and was not said.
    fn take_notice(&mut self) -> Option<String> {
        let is_without = self.parsed.as_ref().is_some_and(|parsed| parsed.image.is_native_image_without_symbols);
        (is_without && !std::mem::replace(&mut self.is_noticed, true)).then(|| {
            let module = &self.module;
            format!(
                "{module} is a GraalVM native image without symbols: its Java methods are [{module}]. Build it with \
                 -H:-DeleteLocalSymbols and -H:-StripDebugInfo for their names"
            )
        })
    }

    /// `None`: the file is still being read.
    fn symbolize(
        &mut self,
        source: Copies,
        offsets: &[u64],
        question: u64,
    ) -> Result<Option<Vec<Option<String>>>, ElfError> {
        let mut parsed = match self.parsed.take() {
            Some(parsed) => parsed,
            None => match self.read(source) {
                Some(image) => Parsed::of(image?),
                None => return Ok(None),
            },
        };
        parsed.idle_windows = 0;
        parsed.asked = question;
        if !parsed.image.has_symbols {
            self.parsed = Some(parsed);
            return Ok(Some(vec![None; offsets.len()]));
        }
        // A parser of hostile bytes that is not ours: should it panic, this file
        // has no names. Everything it touched is dropped with it.
        let names = caught(|| parsed.ask(offsets)).ok_or(ElfError::Malformed("its symbols cannot be parsed"))??;
        self.parsed = Some(parsed);
        Ok(Some(names))
    }

    /// Its symbols, unless they are late.
    fn read(&mut self, source: Copies) -> Option<Result<ElfImage, ElfError>> {
        let copy = move || match source.readable() {
            Some(file) => ElfImage::copy(file),
            None => Err(ElfError::Malformed("it was changed")),
        };
        let mut late = match self.reading.take() {
            Some(late) => late,
            None if !deadline::has_room(self.owner.as_ref()) => return None,
            None => match deadline::within_deadline(self.owner.as_ref(), copy) {
                Ok(image) => return Some(image),
                Err(late) => late,
            },
        };
        match late.take() {
            Progress::Done(image) => Some(image),
            Progress::UnderWay => {
                self.reading = Some(late);
                None
            }
            Progress::Failed => Some(Err(ElfError::Malformed("it cannot be read"))),
        }
    }
}

impl Parsed {
    fn of(image: ElfImage) -> Self {
        let symbolizer =
            Symbolizer::builder().enable_auto_reload(false).enable_code_info(false).enable_inlined_fns(false).build();
        Self { image, symbolizer, idle_windows: 0, asked: 0 }
    }

    fn ask(&self, offsets: &[u64]) -> Result<Vec<Option<String>>, ElfError> {
        let mut elf = Elf::new(self.image.path());
        elf.debug_syms = false;
        let answers = self
            .symbolizer
            .symbolize(&Source::Elf(elf), Input::FileOffset(offsets))
            .map_err(|_| ElfError::Malformed("its symbols cannot be parsed"))?;
        Ok(answers.iter().map(|answer| answer.as_sym().map(|symbol| cut(&demangled(&symbol.name)))).collect())
    }
}

fn cut(name: &str) -> String {
    NAMES.cut(u64::from(name.len() > MAX_NAME_BYTES));
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// The vDSO as a file. The kernel maps the same image into every 64-bit
/// process, so our own serves for all.
pub fn own_vdso(proc_root: &Path) -> io::Result<File> {
    let own = Pid(std::process::id());
    let maps = Maps::read(proc_root, own)?;
    let mapping = maps
        .iter()
        .find(|mapping| mapping.kind == MappingKind::Vdso)
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let length = mapping.end.0.saturating_sub(mapping.start.0).min(MAX_VDSO_BYTES);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, mapping.start.0)?;
    let copy = File::from(rustix::fs::memfd_create("vdso", rustix::fs::MemfdFlags::CLOEXEC)?);
    copy.write_all_at(&bytes, 0)?;
    Ok(copy)
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
