//! Decides what takes the samples of a run.

use crate::{
    config::SamplerChoice,
    kernel::{KernelError, Sampler, sampler::SamplerRoots},
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
    let (sampler, reason) = Sampler::choose(&SamplerRoots::default());
    match reason {
        Some(reason) if choice == SamplerChoice::Timer => return Err(KernelError::NoTimer { reason }),
        Some(reason) => warn(&format!("samples are taken at a fixed rate, also on idle CPUs: {reason}")),
        None => {}
    }
    Ok(sampler)
}
