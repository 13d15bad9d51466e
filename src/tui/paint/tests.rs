use proptest::collection::vec;
use proptest::prelude::*;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::*;

const WIDTH: u16 = 24;
const HEIGHT: u16 = 10;

/// A terminal that shows what was painted so far.
struct Shown {
    terminal: vt100::Parser,
    painter: Painter,
    stands: Option<Buffer>,
}

impl Shown {
    fn new(width: u16, height: u16) -> Shown {
        Shown {
            terminal: vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0),
            painter: Painter::default(),
            stands: None,
        }
    }

    /// Paints a frame, and says in how many bytes.
    fn paint(&mut self, next: Buffer) -> usize {
        let mut out = Vec::new();
        self.painter.paint(self.stands.as_ref(), &next, &mut out);
        self.terminal.process(&out);
        for row in 0..next.area.height {
            let mut column = 0;
            while column < next.area.width {
                let (wanted, seen) = (&next[(column, row)], self.terminal.screen().cell(row, column).unwrap());
                let is = (row, column, String::from_utf8_lossy(&out));
                let text = if seen.contents().is_empty() { " " } else { seen.contents() };
                assert_eq!(text, wanted.symbol(), "{is:?}");
                assert_eq!(seen.bgcolor(), vt_colour(wanted.bg), "ground at {is:?}");
                assert_eq!(seen.inverse(), wanted.modifier.contains(Modifier::REVERSED), "{is:?}");
                assert_eq!(seen.underline(), wanted.modifier.contains(Modifier::UNDERLINED), "{is:?}");
                if !is_blank(wanted) {
                    assert_eq!(seen.fgcolor(), vt_colour(wanted.fg), "{is:?}");
                    // This terminal is either bold or dim.
                    let (bold, dim) =
                        (wanted.modifier.contains(Modifier::BOLD), wanted.modifier.contains(Modifier::DIM));
                    if bold && dim {
                        assert!(seen.bold() || seen.dim(), "{is:?}");
                    } else {
                        assert_eq!((seen.bold(), seen.dim()), (bold, dim), "{is:?}");
                    }
                    assert_eq!(seen.italic(), wanted.modifier.contains(Modifier::ITALIC), "{is:?}");
                }
                column += width_of(wanted) as u16;
            }
        }
        self.stands = Some(next);
        out.len()
    }
}

fn vt_colour(colour: Color) -> vt100::Color {
    match colour {
        Color::Reset => vt100::Color::Default,
        Color::Red => vt100::Color::Idx(1),
        Color::White => vt100::Color::Idx(15),
        Color::Indexed(n) => vt100::Color::Idx(n),
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        other => panic!("{other} is in no test"),
    }
}

fn style() -> impl Strategy<Value = Style> {
    let colour = || {
        prop_oneof![
            Just(Color::Reset),
            Just(Color::Red),
            Just(Color::White),
            Just(Color::Indexed(77)),
            Just(Color::Rgb(1, 22, 203)),
            Just(Color::Rgb(9, 9, 9)),
        ]
    };
    let modifier = prop_oneof![
        3 => Just(Modifier::empty()),
        1 => Just(Modifier::BOLD),
        1 => Just(Modifier::DIM),
        1 => Just(Modifier::REVERSED),
        1 => Just(Modifier::UNDERLINED | Modifier::ITALIC),
        1 => Just(Modifier::BOLD | Modifier::REVERSED),
    ];
    (colour(), colour(), modifier).prop_map(|(fg, bg, modifier)| Style::new().fg(fg).bg(bg).add_modifier(modifier))
}

/// What happens between two frames.
#[derive(Debug, Clone)]
enum Change {
    Write { row: u16, column: u16, text: String, style: Style },
    Tint { row: u16, style: Style },
    Scroll { top: u16, bottom: u16, by: i64 },
}

fn change() -> impl Strategy<Value = Change> {
    let text = prop_oneof![4 => "[a-c ]{1,9}", 1 => "[ab日本│●é]{1,5}"];
    prop_oneof![
        4 => (0..HEIGHT, 0..WIDTH, text, style())
            .prop_map(|(row, column, text, style)| Change::Write { row, column, text, style }),
        1 => (0..HEIGHT, style()).prop_map(|(row, style)| Change::Tint { row, style }),
        2 => (0..HEIGHT, 0..HEIGHT, -3_i64..4).prop_map(|(one, other, by)| Change::Scroll {
            top: one.min(other),
            bottom: one.max(other),
            by
        }),
    ]
}

fn apply(buffer: &mut Buffer, change: &Change) {
    match change {
        Change::Write { row, column, text, style } => {
            buffer.set_stringn(*column, *row, text, usize::from(WIDTH - column), *style);
        }
        Change::Tint { row, style } => buffer.set_style(Rect::new(0, *row, WIDTH, 1), *style),
        Change::Scroll { top, bottom, by } => {
            let before = buffer.clone();
            for row in *top..=*bottom {
                let from = i64::from(row) + by;
                for column in 0..WIDTH {
                    buffer[(column, row)] = match u16::try_from(from) {
                        Ok(from) if (*top..=*bottom).contains(&from) => before[(column, from)].clone(),
                        _ => Cell::EMPTY,
                    };
                }
            }
        }
    }
}

proptest! {
    /// Proves: U8
    #[test]
    fn a_terminal_shows_each_frame_as_it_was_drawn(frames in vec(vec(change(), 1..12), 1..8)) {
        let mut shown = Shown::new(WIDTH, HEIGHT);
        let mut buffer = Buffer::empty(Rect::new(0, 0, WIDTH, HEIGHT));
        for changes in frames {
            changes.iter().for_each(|change| apply(&mut buffer, change));
            shown.paint(buffer.clone());
        }
    }
}

/// A list of a hundred columns with a selected line, from some line on.
fn list(first: usize, selected: usize) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 32));
    let ground = Color::Rgb(17, 22, 29);
    buffer.set_style(buffer.area, Style::new().fg(Color::Rgb(201, 211, 222)).bg(ground));
    buffer.set_string(2, 0, format!("the list  {} of 1000", first + selected), Style::new());
    for row in 0..28 {
        let n = first + row;
        let y = u16::try_from(row).unwrap() + 2;
        let state = ["available", "inspect wait", "clean wait"][n % 3];
        buffer.set_string(4, y, format!("gpu-{:04}-{:02}", n / 20, n % 20), Style::new().fg(Color::Rgb(255, 255, 255)));
        buffer.set_string(30, y, state, Style::new().fg(Color::Rgb(105, 210, 231)));
        buffer.set_string(88, y, format!("{}m ago", n % 60), Style::new().fg(Color::Rgb(130, 144, 160)));
        if row == selected {
            buffer.set_style(Rect::new(0, y, 100, 1), Style::new().bg(Color::Rgb(40, 70, 110)));
        }
    }
    buffer
}

#[test]
fn a_list_that_moves_by_a_line_costs_a_line_and_not_the_list() {
    let mut shown = Shown::new(100, 32);
    let whole = shown.paint(list(0, 27));
    assert!(whole > 3_000, "{whole}");
    for first in 1..40 {
        let bytes = shown.paint(list(first, 27));
        assert!(bytes < 450, "{bytes} bytes to move down");
    }
    for first in (0..39).rev() {
        let bytes = shown.paint(list(first, 0));
        assert!(bytes < 600, "{bytes} bytes to move up");
    }
    // A page: everything is another line, and nothing is gained by moving.
    let page = shown.paint(list(28, 0));
    assert!(page > 600, "{page}");
    // Half a page keeps half.
    let half = shown.paint(list(14, 0));
    assert!(half < whole * 2 / 3, "{half} of {whole}");
}

#[test]
fn a_selection_that_moves_costs_two_lines() {
    let mut shown = Shown::new(100, 32);
    shown.paint(list(0, 3));
    let bytes = shown.paint(list(0, 4));
    assert!(bytes < 450, "{bytes}");
    assert_eq!(shown.paint(list(0, 4)), 0, "nothing is another one");
}

#[test]
fn a_screen_of_another_size_is_drawn_anew() {
    let mut painter = Painter::default();
    let small = Buffer::empty(Rect::new(0, 0, 5, 2));
    let mut large = Buffer::empty(Rect::new(0, 0, 9, 3));
    large.set_string(0, 0, "x", Style::new());
    let mut out = Vec::new();
    painter.paint(Some(&small), &large, &mut out);
    let mut terminal = vt100::Parser::new(3.try_into().unwrap(), 9.try_into().unwrap(), 0);
    terminal.process(b"what stood there\r\nbefore");
    terminal.process(&out);
    assert_eq!(terminal.screen().contents().trim_end(), "x");
}

#[test]
fn what_wrote_in_between_changes_no_colour() {
    let mut shown = Shown::new(100, 32);
    shown.paint(list(0, 3));
    shown.terminal.process(b"\x1b[31;45m");
    shown.painter.forget();
    shown.paint(list(0, 9));
}
