use subtle::ConstantTimeEq;

/// A secret of 128 bits, in hexadecimal.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex::encode(bytes)))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The rest of a request's path after the token; `None` without it. Constant-time, so that timing reveals only the token's length.
    pub(super) fn behind<'p>(&self, path: &'p str) -> Option<&'p str> {
        let path = path.strip_prefix('/')?;
        let (given, rest) = path.split_at_checked(self.0.len())?;
        let is_it: bool = given.as_bytes().ct_eq(self.0.as_bytes()).into();
        is_it.then_some(rest)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_holds_the_whole_token() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert_ne!(token.text(), other.text());
        let path = format!("/{}/report", token.text());
        assert_eq!(token.behind(&path), Some("/report"));
        assert_eq!(other.behind(&path), None);
        for path in ["", "/", "//", "/report", &path[..20], &path[1..], "/é", &format!("/x{}", &path[1..])] {
            assert_eq!(token.behind(path), None, "{path}");
        }
        assert!(!format!("{token:?}").contains(token.text()));
    }
}
