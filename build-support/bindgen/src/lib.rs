pub use current::*;
