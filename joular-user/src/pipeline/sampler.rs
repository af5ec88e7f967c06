//! Decides what takes the samples of a run.

use crate::{
    config::SamplerChoice,
    heap,
    kernel::{KernelError, LoadOptions, Loaded, Programs, Sampler, roots::KernelRoots, sampler::TIMERS_REFUSED},
};

/// What a choice comes to on this machine. Samples by timers are better, so `warn` is told why they
/// are not used, unless that was asked for.
///
/// # Errors
/// If timers were asked for and cannot be used.
pub fn chosen(choice: SamplerChoice, warn: impl Fn(&str)) -> Result<Sampler, KernelError> {
    if choice == SamplerChoice::CpuClock {
        return Ok(Sampler::Event);
    }
    let (sampler, reason) = Sampler::choose(&KernelRoots::default());
    reason.map_or(Ok(()), |reason| without_timers(choice, reason, warn))?;
    Ok(sampler)
}

/// Loads the programs, and says so if the kernel refuses the timers that were chosen.
///
/// # Errors
/// If the programs cannot be loaded, or timers were asked for and the kernel refuses them.
pub fn load(choice: SamplerChoice, options: LoadOptions, warn: impl Fn(&str)) -> Result<Loaded, KernelError> {
    let chosen = options.sampler.name();
    let loaded = Programs::load(options)?;
    // Loading leaves more than 10 MiB of freed memory.
    heap::give_back();
    if loaded.programs.event_name() != chosen {
        without_timers(choice, TIMERS_REFUSED.to_owned(), warn)?;
    }
    Ok(loaded)
}

fn without_timers(choice: SamplerChoice, reason: String, warn: impl Fn(&str)) -> Result<(), KernelError> {
    if choice == SamplerChoice::Timer {
        return Err(KernelError::NoTimer { reason });
    }
    warn(&format!("samples are taken at a fixed rate, also on idle CPUs: {reason}"));
    Ok(())
}
