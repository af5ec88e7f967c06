//! Asks a process's run-time system what must be read from its memory.
//!
//! That may take for ever ([`deadline`]), so it is done elsewhere, and the instance goes along. If it is
//! late, nothing is known of the process until the instance has come back; what was known for good (tables,
//! threads, code) stays in force meanwhile.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    path::PathBuf,
};

use joular_data::{
    events::{JvmNews, RawStack},
    model::{
        frame::Frame,
        units::{Address, Tid},
    },
};
use joular_ebpf::abi::{CompilerThread, FrameWord};

use super::process::Location;
use crate::{
    procs::{
        deadline::{self, Pending, Progress},
        quota::Owner,
    },
    runtimes::{AllocationSites, CodeId, CollectionSites, Instance, KernelTables, NotNow, OwnCode, OwnRange},
};

/// What an instance said when it was last asked for it.
#[derive(Clone, Debug)]
pub struct Facts {
    pub news: Option<JvmNews>,
    pub kernel_tables: Option<KernelTables>,
    pub compiler_threads: Vec<(Tid, CompilerThread)>,
    pub collections: Option<CollectionSites>,
    pub own_code: Vec<OwnRange>,
    pub own_code_version: u64,
}

impl Facts {
    fn of(instance: &dyn Instance) -> Self {
        Self {
            news: instance.news(),
            kernel_tables: instance.kernel_tables(),
            compiler_threads: instance.compiler_threads().to_vec(),
            collections: instance.collections(),
            own_code: instance.own_code().to_vec(),
            own_code_version: instance.own_code_version(),
        }
    }

    pub fn has_code(&self, id: CodeId) -> bool {
        self.own_code.iter().any(|own| own.id == id)
    }
}

#[derive(Debug)]
enum Whereabouts {
    Here(Box<dyn Instance>),
    /// With work that is late.
    Away(Pending<Box<dyn Instance>>),
    /// With work that panicked, or could not begin; or just being asked.
    Lost,
}

/// A run-time system that is understood.
#[derive(Debug)]
pub struct OpenInstance {
    /// Whose process it is in.
    owner: Owner,
    whereabouts: Whereabouts,
    pub facts: Facts,
    /// Counts how often words that it had pinned were dropped.
    pub names_version: u64,
    /// Whether anything was asked in this window.
    is_asked: bool,
    is_away_told: bool,
}

impl OpenInstance {
    pub fn new(instance: Box<dyn Instance>, owner: Owner) -> Self {
        let facts = Facts::of(&*instance);
        Self {
            owner,
            whereabouts: Whereabouts::Here(instance),
            facts,
            names_version: 0,
            is_asked: false,
            is_away_told: false,
        }
    }

    /// The instance, unless it is away.
    pub fn here(&mut self) -> Option<&mut dyn Instance> {
        if let Whereabouts::Away(late) = &mut self.whereabouts {
            match late.take() {
                Progress::Done(instance) => {
                    self.facts = Facts::of(&*instance);
                    self.whereabouts = Whereabouts::Here(instance);
                }
                Progress::UnderWay => {}
                Progress::Failed => self.whereabouts = Whereabouts::Lost,
            }
        }
        match &mut self.whereabouts {
            Whereabouts::Here(instance) => Some(&mut **instance),
            Whereabouts::Away(_) | Whereabouts::Lost => None,
        }
    }

    /// Whether it must be opened anew.
    pub const fn is_lost(&self) -> bool {
        matches!(self.whereabouts, Whereabouts::Lost)
    }

    /// Whether it is away and nobody was told yet.
    pub fn take_lateness(&mut self) -> bool {
        matches!(self.whereabouts, Whereabouts::Away(_)) && !std::mem::replace(&mut self.is_away_told, true)
    }

    /// Has the instance read memory; `None` if it is late.
    fn ask<T: Send + 'static>(&mut self, question: impl FnOnce(&mut dyn Instance) -> T + Send + 'static) -> Option<T> {
        self.here()?;
        let Whereabouts::Here(mut instance) = std::mem::replace(&mut self.whereabouts, Whereabouts::Lost) else {
            return None;
        };
        let (sender, answer) = std::sync::mpsc::channel();
        let work = move || {
            // Nobody waits for a late one.
            let _ = sender.send(question(&mut *instance));
            instance
        };
        match deadline::within_deadline(Some(&self.owner), work) {
            Ok(instance) => self.whereabouts = Whereabouts::Here(instance),
            Err(late) => self.whereabouts = Whereabouts::Away(late),
        }
        answer.try_recv().ok()
    }

    /// Fills in the frames at addresses that are its business, outermost first. Those that it cannot tell now stay
    /// as they are.
    pub fn frames(&mut self, addresses: &[Address], places: &[Location], frames: &mut [Option<Vec<Frame>>]) {
        self.is_asked = true;
        let Some(instance) = self.here() else { return };
        let (mut words, mut code) = (Vec::new(), Vec::new());
        for (index, (&address, place)) in addresses.iter().zip(places).enumerate() {
            let word = FrameWord(address.0);
            match place {
                Location::Word if instance.has_word(word) => match instance.known_frames(word) {
                    known @ Some(_) => frames[index] = known,
                    None => words.push((index, word)),
                },
                // As a walk by frame pointers sees it.
                Location::Generated if instance.has_code(address) => code.push((index, address)),
                _ => {}
            }
        }
        if words.is_empty() && code.is_empty() {
            return;
        }
        let answers = self.ask(move |instance| {
            let (indices, words): (Vec<usize>, Vec<FrameWord>) = words.into_iter().unzip();
            let of_words = indices.into_iter().zip(instance.frames_of_words(&words)).collect::<Vec<_>>();
            let of_code = code.into_iter().map(|(index, address)| (index, instance.frames_at(address)));
            of_words.into_iter().chain(of_code).collect::<Vec<_>>()
        });
        for (index, answer) in answers.into_iter().flatten() {
            frames[index] = Some(answer);
        }
    }

    /// Takes in stacks that have just arrived, each with its generation: fixes what their words mean
    /// ([`Instance::pin`]) and reads what names them. Words that could not be fixed in time have no names.
    pub fn take_in(&mut self, stacks: &mut [(u8, RawStack)]) {
        self.is_asked = true;
        let Some(instance) = self.here() else { return };
        let (mut unknown, mut to_pin) = (BTreeSet::new(), Vec::new());
        for (generation, stack) in stacks {
            if instance.pin_known(*generation, stack) {
                let all: Vec<FrameWord> = words(instance, stack).collect();
                unknown.extend(all.into_iter().filter(|&word| !instance.knows(word)));
            } else {
                to_pin.push((*generation, stack));
            }
        }
        if to_pin.is_empty() && unknown.is_empty() {
            return;
        }
        let mut pinned: Vec<_> =
            to_pin.iter().map(|(generation, stack)| (*generation, RawStack::clone(stack))).collect();
        let pinned = self.ask(move |instance| {
            instance.pin(&mut pinned);
            unknown.extend(pinned.iter().flat_map(|(_, stack)| words(instance, stack)));
            instance.learn(&unknown.into_iter().collect::<Vec<_>>());
            pinned
        });
        for ((_, stack), (_, pinned)) in to_pin.into_iter().zip(pinned.into_iter().flatten()) {
            *stack = pinned;
        }
    }

    /// Has it read again what changes while it runs.
    pub fn look_again(&mut self, look: impl FnOnce(&mut dyn Instance) + Send + 'static) {
        let facts = self.ask(move |instance| {
            look(instance);
            Facts::of(instance)
        });
        if let Some(facts) = facts {
            self.facts = facts;
        }
    }

    /// Ends a window.
    pub fn end_window(&mut self) {
        if std::mem::take(&mut self.is_asked)
            && let Some(instance) = self.here()
        {
            self.names_version += u64::from(instance.end_window());
        }
    }

    /// Where its allocations can be seen; `None`: nowhere. `library` leads to the file that it runs.
    ///
    /// # Errors
    /// If it does not answer in time, or cannot tell now.
    pub fn allocation_sites(&mut self, library: PathBuf) -> Result<Option<AllocationSites>, NotNow> {
        let question = move |instance: &mut dyn Instance| match File::open(library) {
            Ok(library) => instance.allocation(&library),
            Err(_) => Ok(None),
        };
        self.ask(question).unwrap_or(Err(NotNow))
    }

    /// What each of its threads has allocated, in bytes, by the thread's number in its own namespace. `None`: it does
    /// not answer in time, or not for all.
    pub fn allocated_bytes(&mut self, ran: Option<Vec<u32>>) -> Option<HashMap<u32, u64>> {
        self.ask(move |instance| instance.allocated_bytes(ran.as_deref()))?
    }

    /// Names of these threads, by the thread's number in its own namespace; those that it gives in time.
    pub fn thread_names(&mut self, threads: Vec<u32>) -> Vec<(u32, String)> {
        self.ask(move |instance| instance.thread_names(&threads)).unwrap_or_default()
    }

    /// Reads code that it wrote for itself.
    pub fn read_own_code(&mut self, id: CodeId) -> Option<OwnCode> {
        self.ask(move |instance| instance.read_own_code(id))?
    }
}

/// What only the instance can name in a stack.
fn words(instance: &dyn Instance, stack: &RawStack) -> impl Iterator<Item = FrameWord> {
    stack.frames.iter().map(|word| FrameWord(word.0)).filter(|word| instance.has_word(*word))
}
