//! Lists a part of a bucket: the prefixes of tables, dates and hosts that may be wanted, many requests at once. Of bundles
//! these are the prefixes of hours, groups and hosts.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Error, ObjectMeta, ObjectStore, path::Path as Key};

use super::IN_FLIGHT;
use crate::dataset::store::Part;

/// Calls `is_too_many` with each object of these tables in a part of them. Returns whether it never said so.
pub(super) async fn each(
    store: &dyn ObjectStore,
    tables: Vec<Key>,
    part: &Part,
    is_too_many: impl FnMut(&ObjectMeta) -> bool,
) -> Result<bool, Error> {
    let mut prefixes = tables;
    if part.is_narrow() {
        prefixes = dates(store, prefixes, part).await?;
    }
    if let Some(hosts) = &part.hosts {
        let of_hosts = |date: &Key| hosts.iter().map(|host| below(date, host)).collect::<Vec<_>>();
        prefixes = prefixes.iter().flat_map(of_hosts).collect::<Result<_, _>>()?;
    }
    all_of(store, prefixes, is_too_many).await
}

/// The same with each object of these bundles.
pub(super) async fn bundles(
    store: &dyn ObjectStore,
    bundles: Key,
    part: &Part,
    is_too_many: impl FnMut(&ObjectMeta) -> bool,
) -> Result<bool, Error> {
    let mut dates = below_all(store, vec![bundles]).await?;
    dates.retain(|date| part.has_date_of_bundles(&last(date)));
    let mut hours = below_all(store, dates).await?;
    hours.retain(|hour| part.has_hour(&last_but_one(hour), &last(hour)));
    let of_hosts = |hour: &Key| match part.hosts_of_bundles(&last_but_one(hour)) {
        Some(hosts) => hosts.iter().map(|host| below(hour, host)).collect(),
        None => vec![Ok(hour.clone())],
    };
    let prefixes = hours.iter().flat_map(of_hosts).collect::<Result<_, _>>()?;
    all_of(store, prefixes, is_too_many).await
}

/// Those of these prefixes that have anything, by what is listed of `root`.
pub(super) async fn there(
    store: &dyn ObjectStore,
    root: Option<&Key>,
    mut prefixes: Vec<Key>,
) -> Result<Vec<Key>, Error> {
    let listed = store.list_with_delimiter(root).await?.common_prefixes;
    prefixes.retain(|prefix| listed.contains(prefix));
    Ok(prefixes)
}

async fn all_of(
    store: &dyn ObjectStore,
    prefixes: Vec<Key>,
    mut is_too_many: impl FnMut(&ObjectMeta) -> bool,
) -> Result<bool, Error> {
    let listings = prefixes.into_iter().map(|prefix| store.list(Some(&prefix)));
    // Pages of one prefix come one after the other, so prefixes are listed side by side.
    let mut objects = stream::iter(listings).flatten_unordered(IN_FLIGHT);
    while let Some(object) = objects.next().await {
        if is_too_many(&object?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The prefixes of the dates that may be wanted.
async fn dates(store: &dyn ObjectStore, tables: Vec<Key>, part: &Part) -> Result<Vec<Key>, Error> {
    let mut dates = below_all(store, tables).await?;
    dates.retain(|date| part.has_date(&last(date)));
    Ok(dates)
}

/// The prefixes right below these.
async fn below_all(store: &dyn ObjectStore, prefixes: Vec<Key>) -> Result<Vec<Key>, Error> {
    let of_one =
        |prefix: Key| async move { Ok::<_, Error>(store.list_with_delimiter(Some(&prefix)).await?.common_prefixes) };
    let listed: Vec<Vec<Key>> = stream::iter(prefixes).map(of_one).buffer_unordered(IN_FLIGHT).try_collect().await?;
    Ok(listed.into_iter().flatten().collect())
}

/// The last name of a prefix.
fn last(prefix: &Key) -> String {
    prefix.parts().next_back().map(|part| part.as_ref().to_owned()).unwrap_or_default()
}

fn last_but_one(prefix: &Key) -> String {
    prefix.parts().nth_back(1).map(|part| part.as_ref().to_owned()).unwrap_or_default()
}

fn below(prefix: &Key, name: &str) -> Result<Key, Error> {
    Ok(Key::parse(format!("{prefix}/{name}"))?)
}
