//! Lists what rows of a table can be about.

/// One row per …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    Method,
    Class,
    Package,
    Branch,
    Handler,
    Thread,
    ThreadPool,
    Category,
    Kind,
    Process,
    Command,
    Service,
    Container,
    Pod,
    Namespace,
    Host,
    /// The value of a label of pods or hosts.
    Label(LabelKey),
    Line,
    /// Classes of what was allocated: of no other measure.
    ClassAllocated,
}

/// The key of a label. There are as many as a command line names, and they live as long as the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelKey {
    /// `label:KEY`.
    name: &'static str,
}

impl LabelKey {
    const PREFIX: &'static str = "label:";

    /// Of `label:KEY`.
    pub fn named(name: &str) -> Option<Self> {
        let key = name.strip_prefix(Self::PREFIX)?;
        (!key.is_empty() && !key.contains('=')).then(|| Self { name: Box::leak(name.to_owned().into_boxed_str()) })
    }

    pub fn key(self) -> &'static str {
        &self.name[Self::PREFIX.len()..]
    }
}

impl By {
    /// Those of every measure, without those of labels.
    pub const ALL: [Self; 17] = [
        Self::Method,
        Self::Class,
        Self::Package,
        Self::Branch,
        Self::Handler,
        Self::Thread,
        Self::ThreadPool,
        Self::Category,
        Self::Kind,
        Self::Process,
        Self::Command,
        Self::Service,
        Self::Container,
        Self::Pod,
        Self::Namespace,
        Self::Host,
        Self::Line,
    ];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().chain([Self::ClassAllocated]).find(|by| by.name() == name);
        named.or_else(|| LabelKey::named(name).map(Self::Label))
    }

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Class => "class",
            Self::Package => "package",
            Self::Branch => "branch",
            Self::Handler => "handler",
            Self::Thread => "thread",
            Self::ThreadPool => "thread-pool",
            Self::Category => "category",
            Self::Kind => "kind",
            Self::Process => "process",
            Self::Command => "command",
            Self::Service => "service",
            Self::Container => "container",
            Self::Pod => "pod",
            Self::Namespace => "namespace",
            Self::Host => "host",
            Self::Label(key) => key.name,
            Self::Line => "line",
            Self::ClassAllocated => "class-allocated",
        }
    }

    /// Whether a path can contain a row without ending in it: only then do self and total differ.
    pub const fn has_total(self) -> bool {
        matches!(self, Self::Method | Self::Class | Self::Package | Self::Kind | Self::Line)
    }

    /// Whether rows are about threads, whose energy is exact, and not about what samples show.
    pub const fn is_of_threads(self) -> bool {
        matches!(
            self,
            Self::Thread
                | Self::ThreadPool
                | Self::Category
                | Self::Process
                | Self::Command
                | Self::Service
                | Self::Container
                | Self::Pod
                | Self::Namespace
                | Self::Host
                | Self::Label(_)
        )
    }

    /// Whether rows are about whole processes.
    pub const fn is_of_processes(self) -> bool {
        self.is_of_threads() && !matches!(self, Self::Thread | Self::ThreadPool | Self::Category)
    }

    /// Whether it can be called and return, and so has activations.
    pub const fn is_called(self) -> bool {
        matches!(self, Self::Method | Self::Class | Self::Package | Self::Line)
    }

    /// Names of the details that a row has beside its name.
    pub const fn details(self) -> &'static [&'static str] {
        match self {
            Self::Method => &["method", "class", "package", "signature", "module"],
            Self::Class => &["class", "package"],
            Self::Package => &["package"],
            Self::Branch => &["branch_id", "depth"],
            Self::Handler => &["handler", "class", "framework"],
            Self::Thread => &["thread", "tid", "pid", "process", "category", "host"],
            Self::ThreadPool => &["thread_pool"],
            Self::Category => &["category"],
            Self::Kind => &["kind"],
            Self::Process => &["pid", "comm", "main_class", "container", "pod", "host", "run_id", "service", "version"],
            Self::Command => &["command"],
            Self::Service => &["service"],
            Self::Container => &["container", "pod", "host"],
            Self::Pod => &["pod", "pod_name", "namespace"],
            Self::Namespace => &["namespace"],
            Self::Host => &["host", "machine_id", "instance_id"],
            Self::Label(_) => &["value"],
            Self::Line => &["method", "class", "module", "file", "line"],
            Self::ClassAllocated => &["class"],
        }
    }
}
