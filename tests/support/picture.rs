//! A picture of a buffer: the same cells give the same bytes, with an embedded font and no browser.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use swash::scale::{Render, ScaleContext, Source};
use swash::{FontRef, GlyphId};
use unicode_width::UnicodeWidthStr;

type Rgb = [u8; 3];

const SIZE: f32 = 15.0;
/// Antialiasing in so many steps: few enough colours for a palette, which halves the files.
const STEPS: u16 = 7;

/// The ground and the text of a terminal that says nothing of them, for a dark and a light theme.
pub const DARK: (Rgb, Rgb) = ([17, 22, 29], [201, 211, 222]);

/// The sixteen colours, as a common terminal has them.
const ANSI: [Rgb; 16] = [
    [24, 24, 28],
    [205, 72, 72],
    [92, 170, 92],
    [200, 170, 80],
    [84, 130, 210],
    [170, 100, 190],
    [80, 170, 180],
    [190, 196, 204],
    [112, 120, 130],
    [255, 120, 110],
    [130, 220, 130],
    [245, 215, 120],
    [130, 180, 255],
    [220, 150, 235],
    [120, 220, 235],
    [250, 250, 250],
];

/// Draws a buffer as PNG. Characters that the font lacks are an error: a picture with holes proves nothing.
pub fn png(buf: &Buffer, ground: (Rgb, Rgb)) -> Vec<u8> {
    let mut canvas = Canvas::new(buf, ground);
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let cell = &buf[(x, y)];
            let wide = cell.symbol().width().max(1) as u16;
            canvas.cell(cell, x, y, wide);
            x += wide;
        }
    }
    assert!(canvas.missing.is_empty(), "the font has no glyph for {:?}", canvas.missing);
    canvas.encode()
}

struct Canvas {
    font: FontRef<'static>,
    context: ScaleContext,
    glyphs: BTreeMap<GlyphId, Glyph>,
    missing: BTreeSet<char>,
    ground: (Rgb, Rgb),
    cell_w: usize,
    cell_h: usize,
    ascent: i32,
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

/// A glyph's coverage and where it stands to its origin.
struct Glyph {
    left: i32,
    top: i32,
    width: usize,
    coverage: Vec<u8>,
}

impl Canvas {
    fn new(buf: &Buffer, ground: (Rgb, Rgb)) -> Canvas {
        let font = FontRef::from_index(epaint_default_fonts::HACK_REGULAR, 0).expect("the embedded font is a font");
        let metrics = font.metrics(&[]).scale(SIZE);
        let advance = font.glyph_metrics(&[]).scale(SIZE).advance_width(font.charmap().map('M'));
        let (cell_w, cell_h) = (advance.round() as usize, (metrics.ascent + metrics.descent).round() as usize);
        let (width, height) = (usize::from(buf.area.width) * cell_w, usize::from(buf.area.height) * cell_h);
        Canvas {
            font,
            context: ScaleContext::new(),
            glyphs: BTreeMap::new(),
            missing: BTreeSet::new(),
            ground,
            cell_w,
            cell_h,
            ascent: metrics.ascent.round() as i32,
            width,
            height,
            pixels: vec![ground.0; width * height],
        }
    }

    fn cell(&mut self, cell: &Cell, x: u16, y: u16, wide: u16) {
        let (mut fg, mut bg) = (color(cell.fg, self.ground.1), color(cell.bg, self.ground.0));
        if cell.modifier.contains(Modifier::REVERSED) {
            (fg, bg) = (bg, fg);
        }
        if cell.modifier.contains(Modifier::DIM) {
            fg = mix(bg, fg, STEPS / 2 + 1);
        }
        let (x0, y0) = (usize::from(x) * self.cell_w, usize::from(y) * self.cell_h);
        let w = self.cell_w * usize::from(wide);
        self.rect(x0, y0, w, self.cell_h, bg);
        for c in cell.symbol().chars().filter(|c| *c != ' ') {
            match c {
                '\u{2580}'..='\u{259f}' => self.block(c, x0, y0, fg, bg),
                '\u{2800}'..='\u{28ff}' => self.braille(c, x0, y0, fg),
                '✓' => self.strokes(&[(0.08, 0.56, 0.38, 0.74), (0.38, 0.74, 0.92, 0.28)], x0, y0, fg, bg),
                '✗' => self.strokes(&[(0.12, 0.30, 0.88, 0.74), (0.88, 0.30, 0.12, 0.74)], x0, y0, fg, bg),
                // What stands for a character that was taken out is a box.
                '\u{fffd}' => {
                    let edges =
                        [(0.2, 0.2, 0.8, 0.2), (0.2, 0.8, 0.8, 0.8), (0.2, 0.2, 0.2, 0.8), (0.8, 0.2, 0.8, 0.8)];
                    self.strokes(&edges, x0, y0, fg, bg);
                }
                _ => self.glyph(c, x0, y0, fg, bg, cell.modifier.contains(Modifier::BOLD)),
            }
        }
        if cell.modifier.contains(Modifier::UNDERLINED) {
            self.rect(x0, y0 + self.cell_h - 2, w, 1, fg);
        }
    }

    fn rect(&mut self, x: usize, y: usize, w: usize, h: usize, rgb: Rgb) {
        for row in y..(y + h).min(self.height) {
            let from = row * self.width;
            self.pixels[from + x.min(self.width)..from + (x + w).min(self.width)].fill(rgb);
        }
    }

    /// Block elements are drawn: antialiased ones of a font show seams.
    fn block(&mut self, c: char, x: usize, y: usize, fg: Rgb, bg: Rgb) {
        let (w, h) = (self.cell_w, self.cell_h);
        match c {
            '▀' => self.rect(x, y, w, h / 2, fg),
            // Lower eighths, then the whole.
            '\u{2581}'..='\u{2588}' => {
                let part = (h * (c as usize - 0x2580)).div_ceil(8);
                self.rect(x, y + h - part, w, part, fg);
            }
            // Left eighths from seven down to one.
            '\u{2589}'..='\u{258f}' => self.rect(x, y, (w * (0x2590 - c as usize)).div_ceil(8), h, fg),
            '░' | '▒' | '▓' => {
                let step = (c as u16 - 0x2590) * STEPS / 4;
                self.rect(x, y + h / 4, w, h / 2, mix(bg, fg, step.max(2)));
            }
            other => {
                self.missing.insert(other);
            }
        }
    }

    fn braille(&mut self, c: char, x: usize, y: usize, fg: Rgb) {
        let bits = c as u32 - 0x2800;
        let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
        for (bit, (column, row)) in places.into_iter().enumerate() {
            if bits >> bit & 1 == 1 {
                let (w, h) = (self.cell_w, self.cell_h);
                self.rect(x + w * (1 + 2 * column) / 4 - 1, y + h * (3 + 3 * row) / 16, 2, 2, fg);
            }
        }
    }

    /// Lines in fractions of a cell, for the two signs that the font lacks.
    fn strokes(&mut self, lines: &[(f32, f32, f32, f32)], x: usize, y: usize, fg: Rgb, bg: Rgb) {
        let (w, h) = (self.cell_w as f32, self.cell_h as f32);
        for py in 0..self.cell_h {
            for px in 0..self.cell_w {
                let point = (px as f32 + 0.5, py as f32 + 0.5);
                let nearest = lines
                    .iter()
                    .map(|(ax, ay, bx, by)| distance(point, (ax * w, ay * h), (bx * w, by * h)))
                    .fold(f32::MAX, f32::min);
                let step = ((1.35 - nearest).clamp(0.0, 1.0) * f32::from(STEPS)).round() as u16;
                if step > 0 {
                    self.rect(x + px, y + py, 1, 1, mix(bg, fg, step));
                }
            }
        }
    }

    fn glyph(&mut self, c: char, x: usize, y: usize, fg: Rgb, bg: Rgb, bold: bool) {
        let id = self.font.charmap().map(c);
        if id == 0 {
            self.missing.insert(c);
            return;
        }
        let glyph = self.glyphs.entry(id).or_insert_with(|| {
            let mut scaler = self.context.builder(self.font).size(SIZE).hint(false).build();
            let image = Render::new(&[Source::Outline]).render(&mut scaler, id).unwrap_or_default();
            Glyph {
                left: image.placement.left,
                top: image.placement.top,
                width: image.placement.width as usize,
                coverage: image.data,
            }
        });
        let (w, h) = (self.width as i32, self.height as i32);
        for shift in 0..=i32::from(bold) {
            for (n, coverage) in glyph.coverage.iter().enumerate() {
                let px = x as i32 + glyph.left + (n % glyph.width.max(1)) as i32 + shift;
                let py = y as i32 + self.ascent - glyph.top + (n / glyph.width.max(1)) as i32;
                if (0..w).contains(&px) && (0..h).contains(&py) {
                    let step = (u16::from(*coverage) * STEPS + 127) / 255;
                    let at = (py * w + px) as usize;
                    // Bold is drawn twice: the stronger of the two wins, so that no third colour comes about.
                    let drawn = mix(bg, fg, step);
                    if step > 0 && (shift == 0 || closer(drawn, self.pixels[at], fg)) {
                        self.pixels[at] = drawn;
                    }
                }
            }
        }
    }

    fn encode(self) -> Vec<u8> {
        let mut colors = BTreeSet::from([self.ground.0]);
        colors.extend(self.pixels.windows(2).filter(|w| w[0] != w[1]).flatten());
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let bytes: Vec<u8> = if colors.len() <= 256 {
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_filter(png::Filter::NoFilter);
            encoder.set_palette(colors.iter().flatten().copied().collect::<Vec<u8>>());
            let index: BTreeMap<Rgb, u8> = colors.iter().copied().zip(0..=255).collect();
            // Neighbours are mostly of one colour: looking each up would cost more than drawing them.
            let mut last = (self.ground.0, index.get(&self.ground.0).copied().unwrap_or(0));
            let mut of = |pixel: &Rgb| {
                if *pixel != last.0 {
                    last = (*pixel, index[pixel]);
                }
                last.1
            };
            self.pixels.iter().map(&mut of).collect()
        } else {
            encoder.set_color(png::ColorType::Rgb);
            self.pixels.iter().flatten().copied().collect()
        };
        let mut writer = encoder.write_header().expect("a vector takes every write");
        writer.write_image_data(&bytes).expect("a vector takes every write");
        writer.finish().expect("a vector takes every write");
        out
    }
}

/// From a point to a line between two points.
fn distance(p: (f32, f32), a: (f32, f32), b: (f32, f32)) -> f32 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let along = (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    (p.0 - a.0 - along * dx).hypot(p.1 - a.1 - along * dy)
}

fn closer(a: Rgb, b: Rgb, to: Rgb) -> bool {
    let distance = |c: Rgb| c.iter().zip(to).map(|(x, y)| u32::from(x.abs_diff(y))).sum::<u32>();
    distance(a) < distance(b)
}

/// So many steps from one colour to the other.
fn mix(from: Rgb, to: Rgb, step: u16) -> Rgb {
    let step = step.min(STEPS);
    std::array::from_fn(|i| ((u16::from(from[i]) * (STEPS - step) + u16::from(to[i]) * step) / STEPS) as u8)
}

fn color(color: Color, reset: Rgb) -> Rgb {
    let named = match color {
        Color::Reset => return reset,
        Color::Rgb(r, g, b) => return [r, g, b],
        Color::Indexed(i) => usize::from(i),
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    *ANSI.get(named).expect("no theme uses the colour cube")
}
