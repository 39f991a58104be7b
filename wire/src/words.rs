//! Enums of words.

/// Enums whose values have one spelling everywhere: as words and in JSON.
#[macro_export]
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ })+) => {
        $($(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// In the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub fn all_words() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.word()).collect()
            }

            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        })+
    };
}
