//! Reads messages from standard input and writes what is answered to standard output, until the input ends.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::Path,
    thread,
    time::Duration,
};

use jiff::Timestamp;
use joular_data::{
    dataset::{DataSetError, store},
    model::units::UnixMicros,
    report::profile::Stop,
    text::escape,
};
use serde_json::{Map, Value};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
};

use super::{
    bounded,
    lines::{self, Line},
    protocol::{self, Fault, Id},
    session::{Session, Step},
    tools::{self, Tool},
};
use crate::{
    messages,
    query::{Readings, Refusal},
};

/// Readings at a time. Others wait.
const AT_A_TIME: usize = 2;

/// Calls that are not answered yet, at most.
const MOST_OPEN: usize = 32;

/// Lines that were read and not looked at yet, at most.
const MOST_LINES: usize = 4;

/// Why calls cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error("starting what answers calls: {0}")]
    Start(io::Error),
    #[error("reading messages from standard input: {0}")]
    Input(io::Error),
    #[error("writing answers to standard output: {0}")]
    Output(io::Error),
}

/// Answers calls about the data set until standard input ends and all calls are answered. Reading it for one takes `time` at
/// most.
///
/// # Errors
/// If there is no data set, or messages cannot be read or written. A client that is gone is not an error.
pub fn run(data: &Path, time: Duration) -> Result<(), McpError> {
    drop(store::open(data)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(McpError::Start)?;
    let (sender, receiver) = mpsc::channel(MOST_LINES);
    // Nobody can end its waiting for a line: it ends with the program.
    thread::Builder::new().name("mcp-lines".to_owned()).spawn(move || read_lines(&sender)).map_err(McpError::Start)?;
    messages::info(&format!(
        "answering calls about {} on standard input and output",
        escape(&data.display().to_string())
    ));
    let advice = "call again when earlier calls are answered";
    let mut server = Server::new(Readings::new(data.to_owned(), AT_A_TIME, time, advice));
    let done = runtime.block_on(server.answer(receiver));
    server.give_up();
    // A reading that was given up may not have seen it yet.
    runtime.shutdown_background();
    match done {
        Err(McpError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn read_lines(sender: &mpsc::Sender<io::Result<Line>>) {
    let mut input = io::stdin().lock();
    while let Some(line) = lines::next(&mut input).transpose() {
        let is_last = line.is_err();
        if sender.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// A call that is not answered yet.
struct Open {
    number: u64,
    stop: Stop,
    task: AbortHandle,
}

/// The call's number, its id, and what was found.
type Done = (u64, Id, Result<Value, Refusal>);

struct Server {
    session: Session,
    readings: Readings,
    open: HashMap<Id, Open>,
    calls: JoinSet<Done>,
    next: u64,
}

impl Server {
    fn new(readings: Readings) -> Self {
        Self { session: Session::default(), readings, open: HashMap::new(), calls: JoinSet::new(), next: 0 }
    }

    async fn answer(&mut self, mut lines: mpsc::Receiver<io::Result<Line>>) -> Result<(), McpError> {
        let mut is_open = true;
        while is_open || !self.calls.is_empty() {
            tokio::select! {
                line = lines.recv(), if is_open => match line {
                    Some(line) => self.take(&line.map_err(McpError::Input)?)?,
                    None => is_open = false,
                },
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => self.finish(done)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &Line) -> Result<(), McpError> {
        match self.session.take(line) {
            Step::Nothing => Ok(()),
            Step::Say(text) => say(&text),
            Step::Call { id, tool, arguments } => self.call(id, tool, &arguments),
            Step::Cancel(id) => {
                if let Some(open) = self.open.remove(&id) {
                    open.stop.now();
                    open.task.abort();
                }
                Ok(())
            }
        }
    }

    fn call(&mut self, id: Id, tool: &'static Tool, arguments: &Map<String, Value>) -> Result<(), McpError> {
        if self.open.contains_key(&id) {
            return say(&protocol::error(Some(&id), Fault::NotARequest, "a request with this id is not answered yet"));
        }
        let (now, stop) = (UnixMicros(Timestamp::now().as_microsecond()), Stop::default());
        let work = if self.open.len() < MOST_OPEN {
            tool.work(arguments, now, &stop)
        } else {
            Err(Refusal::later("busy", "too many calls are not answered yet: wait for their answers".to_owned()))
        };
        let work = match work {
            Ok(work) => work,
            Err(refusal) => return say(&protocol::result(&id, &tools::result(Err(refusal)))),
        };
        let number = self.next;
        self.next += 1;
        let (readings, ended, of) = (self.readings.clone(), stop.clone(), id.clone());
        let task = self.calls.spawn(async move {
            let found = readings.read(&ended, move |place| work(place).and_then(bounded::fitting)).await;
            (number, of, found)
        });
        self.open.insert(id, Open { number, stop, task });
        Ok(())
    }

    /// Answers a call, unless it was cancelled.
    fn finish(&mut self, done: Result<Done, JoinError>) -> Result<(), McpError> {
        let Ok((number, id, found)) = done else { return Ok(()) };
        // Another call may have the id since.
        if self.open.get(&id).is_none_or(|open| open.number != number) {
            return Ok(());
        }
        self.open.remove(&id);
        say(&protocol::result(&id, &tools::result(found)))
    }

    /// Ends all readings.
    fn give_up(&mut self) {
        for (_, open) in self.open.drain() {
            open.stop.now();
            open.task.abort();
        }
    }
}

fn say(line: &str) -> Result<(), McpError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(McpError::Output)
}
