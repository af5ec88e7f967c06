//! Makes the client of a bucket, by the environment.

use std::{env, time::Duration};

use object_store::{
    ClientConfigKey, Error, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
};

use crate::dataset::store::place::{BucketUrl, Cloud};

/// For one request, answer included. The client's own name for times.
const REQUEST: &str = "60s";
const CONNECT: &str = "10s";

/// Retries within one operation: enough for an answer that was lost. Shipping tries again by itself, and people would
/// rather know.
const RETRIES: usize = 4;
const RETRY: Duration = Duration::from_secs(30);
/// Says another number, for all clouds.
const ATTEMPTS: &str = "AWS_MAX_ATTEMPTS";

/// How often a request is repeated: as the tools of AWS are told, one less than there are attempts.
fn retries(attempts: Option<&str>) -> usize {
    let attempts = attempts.and_then(|attempts| attempts.trim().parse::<u8>().ok());
    attempts.and_then(|attempts| attempts.checked_sub(1)).map_or(RETRIES, usize::from)
}

/// By the environment.
pub(super) fn of(place: &BucketUrl) -> Result<Box<dyn ObjectStore>, Error> {
    let retry = RetryConfig {
        max_retries: retries(env::var(ATTEMPTS).ok().as_deref()),
        retry_timeout: RETRY,
        ..RetryConfig::default()
    };
    let agent = concat!("joular-bpf/", env!("CARGO_PKG_VERSION"));
    let settings = [
        (ClientConfigKey::Timeout, REQUEST),
        (ClientConfigKey::ConnectTimeout, CONNECT),
        (ClientConfigKey::UserAgent, agent),
    ];
    Ok(match place.cloud {
        Cloud::S3 => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(&place.bucket).with_retry(retry);
            let set =
                |builder: AmazonS3Builder, (key, value)| builder.with_config(AmazonS3ConfigKey::Client(key), value);
            Box::new(settings.into_iter().fold(builder, set).build()?)
        }
        Cloud::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&place.bucket).with_retry(retry);
            let set = |builder: GoogleCloudStorageBuilder, (key, value)| {
                builder.with_config(GoogleConfigKey::Client(key), value)
            };
            Box::new(settings.into_iter().fold(builder, set).build()?)
        }
        Cloud::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(&place.bucket).with_retry(retry);
            let set =
                |builder: MicrosoftAzureBuilder, (key, value)| builder.with_config(AzureConfigKey::Client(key), value);
            Box::new(settings.into_iter().fold(builder, set).build()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_one_more_than_retries() {
        for (attempts, expected) in
            [(None, RETRIES), (Some("1"), 0), (Some(" 3 "), 2), (Some("0"), RETRIES), (Some("many"), RETRIES)]
        {
            assert_eq!(retries(attempts), expected, "{attempts:?}");
        }
    }
}
