//! libpq's `require_auth`: the authentication methods that the server is allowed to use.
//!
//! It is a list of allowed methods, or a list of forbidden ones (`!password,!md5`); the two cannot be mixed.

use serde::Deserialize;

/// Authentication method, as named in `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Password in clear text.
    Password,
    /// Salted MD5 hash of the password.
    Md5,
    /// Kerberos; accepted in the list, but not supported here.
    Gss,
    /// Kerberos on Windows; accepted in the list, but not supported here.
    Sspi,
    /// SCRAM, with or without channel binding.
    Scram,
    /// Bearer token; accepted in the list, but not supported here.
    Oauth,
    /// No authentication, as with `trust`.
    None,
}

const METHODS: [(&str, Method); 7] = [
    ("password", Method::Password),
    ("md5", Method::Md5),
    ("gss", Method::Gss),
    ("sspi", Method::Sspi),
    ("scram-sha-256", Method::Scram),
    ("oauth", Method::Oauth),
    ("none", Method::None),
];

/// Authentication methods that the server is allowed to use; all methods by default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RequireAuth {
    text: String,
    /// Allowed methods: one bit per entry of [`METHODS`].
    allowed: u8,
    negative: bool,
}

impl Default for RequireAuth {
    fn default() -> Self {
        Self { text: String::new(), allowed: u8::MAX, negative: true }
    }
}

impl RequireAuth {
    /// Returns true if the server is allowed to use this method.
    pub fn allows(&self, method: Method) -> bool {
        self.allowed & bit(method) != 0
    }

    /// Returns true if the user's list explicitly allows this method.
    pub fn names(&self, method: Method) -> bool {
        !self.negative && self.allows(method)
    }
}

/// Formats the list as the user wrote it.
impl std::fmt::Display for RequireAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn bit(method: Method) -> u8 {
    METHODS.iter().position(|(_, known)| *known == method).map_or(0, |at| 1 << at)
}

impl TryFrom<String> for RequireAuth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let negative = text.starts_with('!');
        let mut allowed = if negative { u8::MAX } else { 0 };
        for part in text.split(',') {
            let name = part.strip_prefix('!');
            if name.is_some() != negative {
                return Err(format!("require_auth {text:?}: methods and ruled-out methods (!) cannot be mixed"));
            }
            let name = name.unwrap_or(part);
            let Some(&(_, method)) = METHODS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = METHODS.iter().map(|(known, _)| *known).collect();
                return Err(format!("require_auth: no method {name:?}; there are {}", known.join(", ")));
            };
            if (allowed & bit(method) != 0) != negative {
                return Err(format!("require_auth {text:?} names {name} twice"));
            }
            allowed ^= bit(method);
        }
        Ok(Self { text, allowed, negative })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequireAuth, String> {
        RequireAuth::try_from(text.to_owned())
    }

    #[test]
    fn a_list_allows_what_it_names_and_a_negative_list_the_rest() {
        let scram = parse("scram-sha-256").expect("parses");
        assert!(scram.allows(Method::Scram) && scram.names(Method::Scram));
        assert!(!scram.allows(Method::Password) && !scram.allows(Method::None));
        let rest = parse("!password,!md5").expect("parses");
        assert!(rest.allows(Method::None) && rest.allows(Method::Scram) && !rest.allows(Method::Md5));
        assert!(!rest.names(Method::Scram));
        assert!(!parse("!none").expect("parses").allows(Method::None));
        assert!(parse("").expect("parses").allows(Method::Password));
        assert!(!RequireAuth::default().names(Method::Password));
    }

    #[test]
    fn what_libpq_refuses_is_refused() {
        for bad in ["md5,!password", "!password,md5", "md5,md5", "!md5,!md5", "none,none", "scram", "md5,", " md5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
