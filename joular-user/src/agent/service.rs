//! Tells systemd how the service goes (sd_notify(3)): that it is ready, what it does, and that it is alive.
//! Nothing happens where no service manager asked for it.

use std::{
    env,
    sync::{
        OnceLock,
        mpsc::{self, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use joular_data::{
    attribution::window_report::WindowReport,
    dataset::write::Unwritten,
    events::{ProcessInfo, RunEnd, RunInfo},
    output::{Output, Result},
    stacks::StackTable,
    text::{count, escape},
};
use sd_notify::NotifyState;

use super::Progress;
use crate::{
    messages::{self, Level},
    shutdown::StopReason,
};

/// Least time between two status lines.
const STATUS_GAP: Duration = Duration::from_secs(10);

/// Messages that may wait. More are left out: a manager that takes none for so long does not miss them.
const WAITING: usize = 64;

/// What the service manager is told.
enum Message {
    Ready,
    Reloading,
    Alive,
    Status(String),
    Stopping,
}

/// The first window is being recorded.
pub fn ready() {
    tell(Message::Ready);
}

/// The configuration is read again; [`ready`] ends it.
pub fn reloading() {
    tell(Message::Reloading);
}

/// Hands a message to a thread of its own, because a manager whose queue is full makes its sender wait, and no window
/// may wait for that.
fn tell(message: Message) {
    static SENDER: OnceLock<Option<SyncSender<Message>>> = OnceLock::new();
    let sender = SENDER.get_or_init(|| {
        let _asked = env::var_os("NOTIFY_SOCKET")?;
        let (sender, messages) = mpsc::sync_channel(WAITING);
        let send_all = move || messages.iter().for_each(|message| send(&message));
        thread::Builder::new().name("joular-notify".to_owned()).spawn(send_all).ok()?;
        Some(sender)
    });
    if let Some(sender) = sender {
        let _ = sender.try_send(message);
    }
}

/// A service manager that cannot be told finds out by itself.
fn send(message: &Message) {
    let _ = match message {
        Message::Ready => sd_notify::notify(&[NotifyState::Ready]),
        Message::Reloading => match NotifyState::monotonic_usec_now() {
            Ok(now) => sd_notify::notify(&[NotifyState::Reloading, now]),
            Err(_) => sd_notify::notify(&[NotifyState::Reloading]),
        },
        Message::Alive => sd_notify::notify(&[NotifyState::Watchdog]),
        Message::Status(text) => sd_notify::notify(&[NotifyState::Status(text)]),
        Message::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
    };
}

/// What is known of a service beside its windows.
#[derive(Clone, Debug, Default)]
pub struct ServiceState {
    /// `None` for what is not a service.
    pub unwritten: Option<Unwritten>,
    /// `None` if runs are not shipped.
    pub progress: Option<Progress>,
}

/// Tells with each window that the recording is alive, and from time to time what it records.
pub struct Heartbeat {
    state: ServiceState,
    told: Option<Instant>,
}

impl Heartbeat {
    pub const fn new(state: ServiceState) -> Self {
        Self { state, told: None }
    }
}

impl Output for Heartbeat {
    fn run_started(&mut self, _run: &RunInfo) -> Result<()> {
        Ok(())
    }

    fn process(&mut self, _process: &ProcessInfo) {}

    fn window(&mut self, report: &WindowReport, _stacks: &StackTable) -> Result<()> {
        tell(Message::Alive);
        if messages::shows(Level::Debug) {
            messages::debug(&about(report));
        }
        if self.told.is_none_or(|told| told.elapsed() >= STATUS_GAP) {
            self.told = Some(Instant::now());
            tell(Message::Status(status(report, &self.state)));
        }
        Ok(())
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        // With another configuration the service goes on.
        if end.reason != StopReason::Reload.name() {
            tell(Message::Stopping);
        }
        Ok(())
    }
}

/// A line about a window, for who looks for a fault.
fn about(report: &WindowReport) -> String {
    let losses = report.losses.iter().filter(|loss| loss.count > 0);
    let losses: Vec<String> = losses.map(|loss| format!("{} {}", loss.count, loss.cause)).collect();
    format!(
        "window {}: {} ms, {} processes, {} threads, {} branches; lost: {}",
        report.index,
        report.length_ns / 1_000_000,
        report.processes.len(),
        report.threads.len(),
        report.branches.len(),
        if losses.is_empty() { "nothing".to_owned() } else { losses.join(", ") }
    )
}

fn status(report: &WindowReport, state: &ServiceState) -> String {
    let attributed_uj: u64 =
        report.domains.iter().filter(|audit| audit.is_shared).map(|audit| audit.attributed.0).sum();
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let watts = attributed_uj as f64 * 1e3 / report.length_ns.max(1) as f64;
    let text = format!("Recording {}, {watts:.1} W", count(report.processes.len(), "process"));
    let shipments = state.progress.iter().map(|progress| progress.now().to_string());
    let unwritten = state.unwritten.iter().map(ToString::to_string).filter(|text| !text.is_empty());
    escape(&[text].into_iter().chain(shipments).chain(unwritten).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use joular_data::fixture::{self, SMALL};

    use super::*;

    #[test]
    fn a_status_says_who_is_recorded_and_with_which_power() {
        struct Statuses(Vec<String>);
        impl Output for Statuses {
            fn run_started(&mut self, _run: &RunInfo) -> Result<()> {
                Ok(())
            }
            fn process(&mut self, _process: &ProcessInfo) {}
            fn window(&mut self, report: &WindowReport, _stacks: &StackTable) -> Result<()> {
                let state = ServiceState { unwritten: Some(Unwritten::default()), progress: Some(Progress::default()) };
                self.0.push(status(report, &state));
                Ok(())
            }
            fn run_ended(&mut self, _end: &RunEnd) -> Result<()> {
                Ok(())
            }
        }
        let mut statuses = Statuses(Vec::new());
        fixture::play(&mut statuses, SMALL, 2).unwrap();
        assert_eq!(statuses.0.len(), 2);
        assert!(statuses.0[1].starts_with("Recording "), "{statuses:?}", statuses = statuses.0);
        assert!(statuses.0[1].ends_with(" W; nothing was shipped yet"), "{statuses:?}", statuses = statuses.0);
    }
}
