//! Checks the sums that must hold within a window, and derives its domains again.

use super::{RunAudit, sum};
use crate::{
    attribution::{
        moved::Moved,
        window_report::{CpuAudit, WindowReport},
        work::{Claimant, DomainWork, WindowWork},
    },
    dataset::read::windows::{Shares, WrittenBranch},
    model::{
        domain::{Domain, Meter, Role},
        units::MicroJoules,
    },
};

/// Checks what each level must sum to, by the figures as written.
pub(crate) fn check(
    audit: &mut RunAudit,
    work: &WindowWork,
    shares: &[Shares],
    threads: &[[MicroJoules; 2]],
    branches: &[WrittenBranch],
) {
    let window = work.index;
    check_shares(audit, window, shares);
    let attributed = sum(shares.iter().map(|share| share.attributed));
    audit.expect(window, "energy of all threads", sum(threads.iter().map(|[energy, _]| *energy)), attributed);
    let mut of_threads = vec![(MicroJoules(0), 0_u64); threads.len()];
    for WrittenBranch { thread, energy, cpu_ns, .. } in branches {
        if let Some((all_energy, all_ns)) = of_threads.get_mut(*thread) {
            *all_energy = all_energy.saturating_add(*energy);
            *all_ns = all_ns.saturating_add(*cpu_ns);
        }
    }
    for ((thread, [energy, _]), (branch_energy, branch_ns)) in work.threads.iter().zip(threads).zip(of_threads) {
        audit.expect(window, &format!("branches' energy of thread {}", thread.tid), branch_energy, *energy);
        audit.expect(window, &format!("branches' time of thread {}", thread.tid), branch_ns, thread.cpu_ns);
    }
    check_times(audit, work);
}

/// Checks that each domain's energy went somewhere, exactly.
pub(crate) fn check_shares(audit: &mut RunAudit, window: u64, shares: &[Shares]) {
    for share in shares {
        let name = || place_name(share);
        let whole = sum([share.attributed, share.static_share, share.unattributed]);
        audit.expect(window, &format!("{}: attributed + static + unattributed", name()), whole, share.measured);
        let items = share.items.total();
        audit.expect(window, &format!("{}: sum of the unattributed items", name()), items, share.unattributed);
    }
}

/// Checks that the energy of network and disk is what their bytes cost, but for what is below a microjoule, which windows
/// hand on.
pub(crate) fn check_models(audit: &mut RunAudit, work: &WindowWork, domains: &[Domain]) {
    let moved = work.moved.as_ref().map(Moved::total).unwrap_or_default();
    for (domain, DomainWork { delta, .. }) in domains.iter().zip(&work.domains) {
        let (Meter::PerByte { .. }, Role::Shared, Some(costs)) = (domain.meter, domain.role, domain.byte_costs())
        else {
            continue;
        };
        let cost_uj = u64::try_from(costs.of(&moved) / 1_000_000).unwrap_or(u64::MAX);
        let found_uj = delta.measured.0.saturating_sub(delta.static_floor.unwrap_or_default().0);
        if !(cost_uj..=cost_uj.saturating_add(1)).contains(&found_uj) {
            audit.expect(work.index, &format!("{}: energy of its bytes", domain.name), found_uj, cost_uj);
        }
    }
}

/// Checks that all CPU time is there, and that every table has the same.
fn check_times(audit: &mut RunAudit, work: &WindowWork) {
    let (window, cpu) = (work.index, &work.cpu);
    let mut of_threads = vec![(0_u64, 0_u64); work.threads.len()];
    for claimed in &work.slices {
        if let Claimant::Thread(position) = claimed.claimant
            && let Some((cpu_ns, samples)) = of_threads.get_mut(position)
        {
            *cpu_ns = cpu_ns.saturating_add(claimed.slice.cpu_ns);
            *samples = samples.saturating_add(claimed.slice.samples);
        }
    }
    for (thread, found) in work.threads.iter().zip(of_threads.iter().copied()) {
        let what = format!("weights of thread {}: time and samples", thread.tid);
        let shown = |(cpu_ns, samples): (u64, u64)| format!("{cpu_ns} ns, {samples}");
        audit.expect(window, &what, shown(found), shown((thread.cpu_ns, thread.samples)));
    }
    let group = |wanted: Claimant| {
        let slices = work.slices.iter().filter(|claimed| claimed.claimant == wanted);
        slices.fold(0, |sum: u64, claimed| sum.saturating_add(claimed.slice.cpu_ns))
    };
    let target_ns = work.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.cpu_ns));
    for (what, found, expected) in [
        ("weights of other processes", group(Claimant::OtherProcesses), cpu.other_ns),
        ("weights of kernel threads", group(Claimant::Kernel), cpu.kernel_ns),
        ("weights of joular-bpf", group(Claimant::Profiler), cpu.profiler_ns),
        ("weights without a slot", group(Claimant::Unslotted), cpu.unslotted_ns),
        ("weights of idling", group(Claimant::Idle), cpu.idle_ns),
        ("time of all threads", target_ns, cpu.target_ns),
        ("samples of all threads", of_threads.iter().map(|(_, samples)| samples).sum(), cpu.samples),
    ] {
        audit.expect(window, what, found, expected);
    }
    check_cpu(audit, window, cpu);
}

/// Checks that CPUs' times are whole.
pub(crate) fn check_cpu(audit: &mut RunAudit, window: u64, cpu: &CpuAudit) {
    // Where a CPU came or went, the run itself says that times are not exact.
    if cpu.inexact_ns > 0 {
        audit.inexact_times += 1;
        return;
    }
    let ran_ns = [cpu.target_ns, cpu.other_ns, cpu.kernel_ns, cpu.profiler_ns].iter().sum::<u64>();
    audit.expect(window, "time of all that ran", ran_ns, cpu.busy_ns);
    let elapsed_ns = cpu.busy_ns.saturating_add(cpu.idle_ns).saturating_add(cpu.unslotted_ns);
    audit.expect(window, "busy + idle + unslotted time", elapsed_ns, cpu.elapsed_ns);
}

/// Checks that the domains' rows follow from the weights.
pub(crate) fn compare_domains(audit: &mut RunAudit, report: &WindowReport, shares: &[Shares]) {
    audit.expect(report.index, "the number of its domains", shares.len(), report.domains.len());
    for (domain, share) in report.domains.iter().zip(shares) {
        let name = place_name(share);
        let mut expect = |what: &str, written, derived| {
            audit.expect(report.index, &format!("{name}: {what}_uj"), written, derived);
        };
        expect("attributed", share.attributed, domain.attributed);
        expect("static", share.static_share, domain.static_share);
        expect("owed", share.owed, domain.owed);
        for ((item, written), (_, derived)) in share.items.items().into_iter().zip(domain.unattributed.items()) {
            expect(item, written, derived);
        }
    }
}

fn place_name(share: &Shares) -> String {
    let socket = share.socket.map(|socket| format!(" of socket {socket}")).unwrap_or_default();
    let core = share.core.map(|core| format!(", core {core}")).unwrap_or_default();
    format!("{}{socket}{core}", share.domain)
}
