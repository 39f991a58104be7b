//! Mistakes as text with markers under the lines they are about. The only user of annotate-snippets.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle};

use super::{Mistake, Mistakes, Place, SHOWN, Source, count::count};

impl Mistakes {
    /// All mistakes with file, line, column, marker and help, and a last line that counts them.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let mut text = String::new();
        for mistake in self.list.iter().take(SHOWN) {
            text.push_str(&renderer.render(&[self.group(mistake)]));
            text.push_str("\n\n");
        }
        if !self.harmless
            && let Some(source) = self.sources.first()
        {
            let hidden = self.list.len().saturating_sub(SHOWN);
            let more = if hidden > 0 { format!(", {hidden} of them not shown") } else { String::new() };
            text.push_str(&format!("{}: {}{more}\n", source.name, count(self.list.len(), "error")));
        }
        text
    }

    fn group<'a>(&'a self, mistake: &'a Mistake) -> Group<'a> {
        let level = if self.harmless { Level::NOTE } else { Level::ERROR };
        let mut group = Group::with_title(level.primary_title(mistake.message.as_str()));
        match &mistake.place {
            None => group = group.element(Origin::path(self.sources[0].name.as_str())),
            Some(place) => {
                // One snippet per source, the mistake's own first.
                let mut places = vec![(place, mistake.label.as_str(), AnnotationKind::Primary)];
                places.extend(mistake.also.iter().map(|(at, text)| (at, text.as_str(), AnnotationKind::Context)));
                let mut order = vec![place.source];
                order.extend(places.iter().map(|(at, ..)| at.source).filter(|source| *source != place.source));
                order.dedup();
                for index in order {
                    let here: Vec<_> = places.iter().filter(|(at, ..)| at.source == index).copied().collect();
                    group = show(group, &self.sources[index], &here);
                }
            }
        }
        match &mistake.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }
}

/// Most bytes shown for one mistake: a plan may be a single line of a megabyte.
const SHOWN_BYTES: usize = 20_000;

type Marker<'a> = (&'a Place, &'a str, AnnotationKind);

/// Adds the lines of these places: together, or separately if they are far apart, or only by name if they are too long.
fn show<'a>(group: Group<'a>, source: &'a Source, places: &[Marker<'a>]) -> Group<'a> {
    if let Some(snippet) = snippet(source, places) {
        return group.element(snippet);
    }
    if places.len() > 1 {
        return places.iter().fold(group, |group, place| show(group, source, std::slice::from_ref(place)));
    }
    let (line, column) = source.position(places[0].0.span.start);
    group.element(Origin::path(source.name.as_str()).line(line).char_column(column))
}

/// Only the lines from the first marker to the last; the rest of a large file is not examined.
fn snippet<'a>(source: &'a Source, places: &[Marker<'a>]) -> Option<Snippet<'a, Annotation<'a>>> {
    let text = source.text.as_str();
    let first = places.iter().map(|(at, ..)| at.span.start).min()?.min(text.len());
    let last = places.iter().map(|(at, ..)| at.span.end).max()?.clamp(first, text.len());
    let from = text.as_bytes()[..first].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let to =
        text.as_bytes()[last..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |newline| last + newline);
    if to - from > SHOWN_BYTES {
        return None;
    }
    let snippet = Snippet::source(&text[from..to]).line_start(source.position(from).0).path(source.name.as_str());
    Some(snippet.annotations(places.iter().map(|(at, label, kind)| {
        let start = text.floor_char_boundary(at.span.start).max(from) - from;
        let end = text.ceil_char_boundary(at.span.end).clamp(from + start, to) - from;
        kind.span(start..end).label((!label.is_empty()).then_some(*label))
    })))
}
