//! Knows who asks, and what they may see.
//!
//! A proxy that knows its users names them in a header. It is believed by its address, and always has to name somebody.
//! From elsewhere such a header says nothing, and the token is needed.

use http_body_util::Full;
use hyper::{Response, StatusCode, body::Bytes};

use crate::{
    config::{AccessRules, Sight, Trust},
    output::http::{self, Asked, PLAIN},
};

/// Who may read.
#[derive(Debug, Default)]
pub struct Readers {
    pub has_token: bool,
    /// Who shows the token, for the rules.
    pub token_user: Option<String>,
    pub trust: Option<Trust>,
    /// `None`: all see everything.
    pub rules: Option<AccessRules>,
}

/// Why somebody may read nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The token is missing.
    NoToken,
    /// The proxy named nobody.
    NoUser,
    /// There is no token, and the request is not the proxy's.
    NotFromProxy,
}

impl Readers {
    /// What whoever asks may see.
    ///
    /// # Errors
    /// If it is not known who asks.
    pub fn sight(&self, asked: &Asked) -> Result<Sight, Unknown> {
        match &self.trust {
            Some(trust) if trust.believes(asked.client) => {
                let user = trust.user(&asked.headers).ok_or(Unknown::NoUser)?;
                Ok(self.sight_of(user, &trust.groups(&asked.headers)))
            }
            Some(_) if !self.has_token => Err(Unknown::NotFromProxy),
            _ if !asked.is_allowed => Err(Unknown::NoToken),
            _ => Ok(self.token_user.as_ref().map_or_else(Sight::default, |user| self.sight_of(user, &[]))),
        }
    }

    fn sight_of(&self, user: &str, groups: &[&str]) -> Sight {
        self.rules.as_ref().map_or_else(Sight::default, |rules| rules.sight(user, groups))
    }

    /// Whether no page elsewhere could have sent this request by giving its own name this server's address: browsers show
    /// the token only to the name that it was given for, and there is none on a proxy's own host. A browser on this host
    /// could send the header itself.
    pub fn takes_any_name(&self, asked: &Asked) -> bool {
        match &self.trust {
            Some(trust) if trust.believes(asked.client) => !asked.client.to_canonical().is_loopback(),
            _ => self.has_token,
        }
    }
}

impl Unknown {
    pub fn into_response(self) -> Response<Full<Bytes>> {
        let text = match self {
            Self::NoToken => return http::unauthorised(),
            Self::NoUser => {
                "the proxy does not say who asks: it has to send one name in the header of --trust-header\n"
            }
            Self::NotFromProxy => "ask through the proxy, whose addresses --trust-from has\n",
        };
        http::response(StatusCode::UNAUTHORIZED, PLAIN, text)
    }
}

#[cfg(test)]
#[path = "readers_tests.rs"]
mod tests;
