//! Resolves what of a fleet's place is read.

use joular_data::{
    fleet::choice::{self, View, Wish},
    report::profile::Sources,
};

use super::ConfigError;

/// Where a question is read that shows these views, by the name of a tier.
///
/// # Errors
/// If there is no tier of this name.
pub fn sources(tier: &str, views: impl IntoIterator<Item = View>) -> Result<Sources, ConfigError> {
    let wish = Wish::named(tier).ok_or_else(|| {
        let names = Wish::ALL.map(Wish::name).join(", ");
        ConfigError::Invalid { place: "--tier".to_owned(), cause: format!("'{tier}' is not one of {names}") }
    })?;
    Ok(choice::sources(wish, views))
}

/// The names of tiers, for who describes them.
pub fn tiers() -> Vec<&'static str> {
    Wish::ALL.map(Wish::name).to_vec()
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;
    use crate::cli::TierFlags;

    #[test]
    fn the_flag_has_all_tiers_and_no_others() {
        let command = TierFlags::augment_args(Command::new("x"));
        let flag = command.get_arguments().find(|argument| argument.get_id() == "tier").unwrap();
        let values = flag.get_possible_values();
        assert_eq!(values.iter().map(|value| value.get_name()).collect::<Vec<_>>(), tiers());
        assert!(tiers().iter().all(|tier| sources(tier, []).is_ok()));
        assert!(sources(&TierFlags::default().tier, []).is_ok());
        let error = sources("daily", []).unwrap_err().to_string();
        assert!(error.contains("--tier") && error.contains("hourly"), "{error}");
    }
}
