//! Keeps what the file of this program lends it from serving anyone but a recording.
//!
//! A copy with file capabilities, or with the set-user-ID bit, has rights that its user does not have. They are lent for
//! one purpose: what a recording reads of the kernel and of processes. So such a process begins without any
//! ([`lay_aside`]) and takes up those of a recording when it records ([`take_up`]). What its user names, files and
//! commands, it opens and starts with the user's own rights ([`as_the_user`]). What acts for somebody gives up all
//! ([`give_up`]).
//!
//! Nothing is lent to root, who could do it anyway.

use rustix::{
    io,
    process::{getgid, getuid},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities, set_thread_res_gid,
        set_thread_res_uid,
    },
};

/// What a recording may do with rights that its user does not have.
const OF_A_RECORDING: [CapabilitySet; 9] = [
    // Those of a whole recording: see `NEEDED`.
    CapabilitySet::BPF,
    CapabilitySet::PERFMON,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::CHECKPOINT_RESTORE,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::SYSLOG,
    // Perf events on some kernels; given up later elsewhere.
    CapabilitySet::SYS_ADMIN,
    // Its priority and its limits, at the start only.
    CapabilitySet::SYS_NICE,
    CapabilitySet::SYS_RESOURCE,
];

/// Whether this process has, or had, rights that are not its user's own.
pub fn are_lent() -> bool {
    // SAFETY: it reads a word that the kernel gave this process, and takes no pointer.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    // A security module may say so of root's processes too, as of services.
    is_secure && !getuid().is_root()
}

/// Leaves only those that a recording needs, and uses none of them. Must be called before there are other threads.
///
/// # Errors
/// If the kernel does not allow it, which it always does.
pub fn lay_aside() -> io::Result<()> {
    if !are_lent() {
        return Ok(());
    }
    let lent: CapabilitySet = OF_A_RECORDING.into_iter().collect();
    let (user, group) = (getuid(), getgid());
    // Set-user-ID root: it stays allowed what it was, and is nobody but its user.
    set_keep_capabilities(true)?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    set_keep_capabilities(false)?;
    let permitted = capabilities(None)?.permitted & lent;
    let none = CapabilitySet::empty();
    // What cannot be inherited is not ambient either.
    set_capabilities(None, CapabilitySets { effective: none, permitted, inheritable: none })
}

/// Begins to use what is lent for a recording: this thread, and those that it starts.
///
/// # Errors
/// As [`lay_aside`].
pub fn take_up() -> std::io::Result<()> {
    Ok(use_lent(|permitted| permitted)?)
}

/// Does something with the user's own rights, such as opening a file that the user named. Threads that it starts have no
/// others.
///
/// # Errors
/// As [`lay_aside`].
pub fn as_the_user<T>(act: impl FnOnce() -> T) -> std::io::Result<T> {
    let before = capabilities(None)?.effective;
    use_lent(|_| CapabilitySet::empty())?;
    let done = act();
    use_lent(|_| before)?;
    Ok(done)
}

fn use_lent(choose: impl FnOnce(CapabilitySet) -> CapabilitySet) -> io::Result<()> {
    if !are_lent() {
        return Ok(());
    }
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { effective: choose(held.permitted), ..held })
}

/// Gives up all that is lent, for good.
///
/// # Errors
/// As [`lay_aside`].
pub fn give_up() -> io::Result<()> {
    if are_lent() { give_up_all() } else { Ok(()) }
}

/// Gives up every capability, whoever it is from.
///
/// # Errors
/// As [`lay_aside`].
pub fn give_up_all() -> io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Whether this process may act for a user: root for everyone, and everyone for themselves.
pub fn may_act_for(user: u32) -> bool {
    acts_for(getuid().as_raw(), user, are_lent())
}

/// With rights that are lent not even for oneself, because the user's groups would be anyone's choice.
const fn acts_for(own: u32, user: u32, are_lent: bool) -> bool {
    own == 0 || (own == user && !are_lent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_acts_for_everyone_and_others_for_themselves_unless_rights_are_lent() {
        for (own, user, are_lent, expected) in [
            (0, 0, false, true),
            (0, 1000, false, true),
            (1000, 1000, false, true),
            (1000, 0, false, false),
            (1000, 1001, false, false),
            (1000, 1000, true, false),
            (1000, 0, true, false),
        ] {
            assert_eq!(acts_for(own, user, are_lent), expected, "{own} for {user}, lent: {are_lent}");
        }
    }
}
