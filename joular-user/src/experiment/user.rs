//! Knows the user that a command runs as: the one behind `sudo`, or one that was named.

use std::{ffi::CString, io};

use nix::unistd::{self, getgrouplist};
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::privileges::lent;

/// Why a command is not started as somebody else.
pub const ONLY_ROOT: &str = "only root may start a command as another user";

/// A user, with all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    /// Variables of its environment that tell who it is; none if the user database does not know it.
    environment: Vec<(&'static str, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error("there is no user {0}: give a name or a number of /etc/passwd")]
    Unknown(String),
    #[error("looking up user {name}: {source}")]
    LookUp { name: String, source: io::Error },
}

impl User {
    /// By name or number.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(text: &str) -> Result<Self, UserError> {
        let failed = |error: nix::Error| UserError::LookUp { name: text.to_owned(), source: error.into() };
        let found = match text.parse() {
            Ok(uid) => unistd::User::from_uid(unistd::Uid::from_raw(uid)),
            Err(_) => unistd::User::from_name(text),
        };
        let found = found.map_err(failed)?.ok_or_else(|| UserError::Unknown(text.to_owned()))?;
        Self::of(&found).map_err(|source| UserError::LookUp { name: text.to_owned(), source })
    }

    /// The user behind `sudo`, whom the database may not know.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn invoking((uid, gid): (u32, u32)) -> Result<Self, UserError> {
        match Self::named(&uid.to_string()) {
            Err(UserError::Unknown(_)) => Ok(Self { uid, gid, groups: vec![gid], environment: Vec::new() }),
            found => found,
        }
    }

    fn of(entry: &unistd::User) -> io::Result<Self> {
        let name = CString::new(entry.name.as_str()).map_err(io::Error::other)?;
        let groups = getgrouplist(&name, entry.gid)?.into_iter().map(unistd::Gid::as_raw).collect();
        let home = entry.dir.to_string_lossy().into_owned();
        let shell = entry.shell.to_string_lossy().into_owned();
        let name = entry.name.clone();
        let environment = vec![("HOME", home), ("SHELL", shell), ("LOGNAME", name.clone()), ("USER", name)];
        Ok(Self { uid: entry.uid.as_raw(), gid: entry.gid.as_raw(), groups, environment })
    }

    /// User and group.
    pub const fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Variables that tell who it is.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.environment.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// `UID:GID:GROUP,…`, for [`Self::parse`].
    pub fn to_argument(&self) -> String {
        let groups: Vec<String> = self.groups.iter().map(u32::to_string).collect();
        format!("{}:{}:{}", self.uid, self.gid, groups.join(","))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (uid, gid, groups) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
        let groups = groups.split(',').filter(|group| !group.is_empty()).map(|group| group.parse().ok());
        let user = Self { uid, gid, groups: groups.collect::<Option<_>>()?, environment: Vec::new() };
        // The kernel leaves an id as it is that is to become the last number.
        let is_someone = ![uid, gid].contains(&u32::MAX) && !user.groups.contains(&u32::MAX);
        (is_someone && parts.next().is_none()).then_some(user)
    }

    /// Gives up this process's user and groups for these. It must have one thread.
    ///
    /// # Errors
    /// If it may not.
    pub fn become_it(&self) -> io::Result<()> {
        if !lent::may_act_for(self.uid) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, ONLY_ROOT));
        }
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        // The kernel does so too, unless root's process was told to keep them.
        if self.uid != 0 { Ok(lent::give_up_all()?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        let root = User::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::named("0").unwrap(), root);
        assert!(root.environment().any(|variable| variable == ("USER", "root")));
        assert!(matches!(User::named("no such user"), Err(UserError::Unknown(_))));
    }

    #[test]
    fn one_that_no_database_knows_has_its_own_group() {
        let user = User::invoking((4_000_000_001, 4_000_000_002)).unwrap();
        assert_eq!(user.to_argument(), "4000000001:4000000002:4000000002");
    }

    #[test]
    fn what_names_no_user_is_refused() {
        let as_many = format!("1:1:{}", "7,".repeat(60_000));
        for text in ["1000:100:100,27", "0:0:0", "1:1:", "1:1:5,5,5", "4294967294:1:1", &as_many] {
            assert!(User::parse(text).is_some(), "{text}");
        }
        let huge = "1".repeat(128 << 10);
        for text in [
            "",
            ":",
            "::",
            "1",
            "1:1",
            "1:1:1:1",
            "-1:1:1",
            "1:-1:1",
            "1:1:-1",
            "root:root:root",
            "1:1:1,x",
            " 1:1:1",
            "4294967295:1:1",
            "1:4294967295:1",
            "1:1:4294967295",
            "1:1:1,4294967295",
            "4294967296:1:1",
            &huge,
            "1\0:1:1",
        ] {
            assert!(User::parse(text).is_none(), "{text}");
        }
    }
}
