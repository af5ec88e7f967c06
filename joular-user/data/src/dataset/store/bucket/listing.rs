//! Lists a part of a bucket: the prefixes of tables, dates and hosts that may be wanted, many requests at once.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Error, ObjectMeta, ObjectStore, path::Path as Key};

use super::IN_FLIGHT;
use crate::dataset::store::Part;

/// Calls `is_too_many` with each object of these tables in a part of them. Returns whether it never said so.
pub(super) async fn each(
    store: &dyn ObjectStore,
    tables: Vec<Key>,
    part: &Part,
    mut is_too_many: impl FnMut(&ObjectMeta) -> bool,
) -> Result<bool, Error> {
    let mut prefixes = tables;
    if part.is_narrow() {
        prefixes = dates(store, prefixes, part).await?;
    }
    if let Some(hosts) = &part.hosts {
        let of_hosts = |date: &Key| hosts.iter().map(|host| below(date, host)).collect::<Vec<_>>();
        prefixes = prefixes.iter().flat_map(of_hosts).collect::<Result<_, _>>()?;
    }
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
    let of_table =
        |table: Key| async move { Ok::<_, Error>(store.list_with_delimiter(Some(&table)).await?.common_prefixes) };
    let listed: Vec<Vec<Key>> = stream::iter(tables).map(of_table).buffer_unordered(IN_FLIGHT).try_collect().await?;
    let is_wanted = |key: &Key| key.parts().next_back().is_some_and(|date| part.has_date(date.as_ref()));
    Ok(listed.into_iter().flatten().filter(is_wanted).collect())
}

fn below(prefix: &Key, name: &str) -> Result<Key, Error> {
    Ok(Key::parse(format!("{prefix}/{name}"))?)
}
