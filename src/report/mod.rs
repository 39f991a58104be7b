//! A view of everything shown, turned into HTML, text, JUnit and JSON.
