// SPDX-License-Identifier: Apache-2.0
//! Log-log line charts as SVG, in a grid of panels that share their axes and their legend.

use std::fmt::Write;

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Its name in the legend.
    pub name: &'static str,
    /// Colour of line and marks.
    pub colour: &'static str,
    /// `stroke-dasharray`; empty: a solid line.
    pub dash: &'static str,
    /// Points are marked.
    pub marks: bool,
}

/// One line: points from left to right.
pub struct Line {
    /// How it is drawn: the place in [`Grid::styles`].
    pub style: usize,
    /// Points.
    pub points: Vec<(f64, f64)>,
}

/// One chart.
pub struct Panel {
    /// What it is about.
    pub title: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Charts in rows.
pub struct Grid {
    /// Title of all.
    pub title: String,
    /// Name and unit of the horizontal axis.
    pub x_name: String,
    /// Name and unit of the vertical axis.
    pub y_name: String,
    /// Ticks of the horizontal axis; its ends are the first and the last.
    pub x_ticks: Vec<(f64, String)>,
    /// Ticks of the vertical axis; its ends are the first and the last.
    pub y_ticks: Vec<(f64, String)>,
    /// Styles, in the order of the legend.
    pub styles: Vec<Style>,
    /// The charts, row by row.
    pub panels: Vec<Panel>,
    /// Charts in a row.
    pub columns: usize,
}

// Places and sizes in pixels.
const PLOT: (f64, f64) = (240.0, 190.0);
const GAP: (f64, f64) = (26.0, 48.0);
const LEFT: f64 = 84.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 110.0;
const BOTTOM: f64 = 62.0;

impl Grid {
    /// The picture.
    pub fn svg(&self) -> String {
        let rows = self.panels.len().div_ceil(self.columns);
        let span = |n: usize, size: f64, gap: f64| n as f64 * (size + gap) - gap;
        let width = LEFT + span(self.columns, PLOT.0, GAP.0) + RIGHT;
        let height = TOP + span(rows, PLOT.1, GAP.1) + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        let middle = LEFT + span(self.columns, PLOT.0, GAP.0) / 2.0;
        text(
            &mut svg,
            (middle, 26.0),
            "middle",
            "font-size=\"16\" font-weight=\"bold\"",
            &self.title,
        );
        self.legend(&mut svg, middle);
        for (i, panel) in self.panels.iter().enumerate() {
            let (row, column) = (i / self.columns, i % self.columns);
            let x = LEFT + column as f64 * (PLOT.0 + GAP.0);
            let y = TOP + row as f64 * (PLOT.1 + GAP.1);
            let lowest = i + self.columns >= self.panels.len();
            let _ = writeln!(svg, "<g transform=\"translate({x:.0} {y:.0})\">");
            self.panel(&mut svg, panel, column == 0, lowest);
            svg.push_str("</g>\n");
        }
        text(
            &mut svg,
            (middle, height - 12.0),
            "middle",
            "font-size=\"13\"",
            &self.x_name,
        );
        let centre = TOP + span(rows, PLOT.1, GAP.1) / 2.0;
        let turned = format!("font-size=\"13\" transform=\"rotate(-90 22 {centre:.0})\"");
        text(&mut svg, (22.0, centre), "middle", &turned, &self.y_name);
        svg.push_str("</svg>\n");
        svg
    }

    /// The styles side by side, in two rows.
    fn legend(&self, svg: &mut String, middle: f64) {
        const CELL: f64 = 250.0;
        let columns = self.styles.len().div_ceil(2);
        let start = middle - columns as f64 * CELL / 2.0;
        for (i, style) in self.styles.iter().enumerate() {
            // Column by column: what belongs together stands one above the other.
            let x = start + (i / 2) as f64 * CELL;
            let y = 50.0 + (i % 2) as f64 * 20.0;
            let ends = [(x, y), (x + 34.0, y)];
            stroke(svg, style, &ends);
            if style.marks {
                mark(svg, style, (x + 17.0, y));
            }
            text(svg, (x + 42.0, y + 4.0), "start", "font-size=\"12\"", style.name);
        }
    }

    fn panel(&self, svg: &mut String, panel: &Panel, first: bool, lowest: bool) {
        let along = |value: f64, ticks: &[(f64, String)]| {
            let ends = (ticks.first().map_or(1.0, |t| t.0), ticks.last().map_or(10.0, |t| t.0));
            (value.ln() - ends.0.ln()) / (ends.1.ln() - ends.0.ln())
        };
        let x_of = |value: f64| PLOT.0 * along(value, &self.x_ticks);
        let y_of = |value: f64| PLOT.1 * (1.0 - along(value, &self.y_ticks));
        for (value, name) in &self.x_ticks {
            let x = x_of(*value);
            rule(svg, (x, 0.0), (x, PLOT.1));
            if lowest {
                text(svg, (x, PLOT.1 + 16.0), "middle", "", name);
            }
        }
        for (value, name) in &self.y_ticks {
            let y = y_of(*value);
            rule(svg, (0.0, y), (PLOT.0, y));
            if first {
                text(svg, (-7.0, y + 4.0), "end", "", name);
            }
        }
        let _ = writeln!(
            svg,
            "<rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444444\"/>",
            PLOT.0, PLOT.1
        );
        text(
            svg,
            (PLOT.0 / 2.0, -9.0),
            "middle",
            "font-size=\"13\" font-weight=\"bold\"",
            &panel.title,
        );
        for line in &panel.lines {
            let Some(style) = self.styles.get(line.style) else {
                continue;
            };
            let points: Vec<_> = line.points.iter().map(|(x, y)| (x_of(*x), y_of(*y))).collect();
            stroke(svg, style, &points);
            if style.marks {
                points.iter().for_each(|point| mark(svg, style, *point));
            }
        }
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, more: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#111111\" {more}>{words}</text>"
    );
}

/// A line of the grid.
fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#e2e2e2\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn stroke(svg: &mut String, style: &Style, points: &[(f64, f64)]) {
    let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-dasharray=\"{}\"/>",
        list.join(" "),
        style.colour,
        if style.dash.is_empty() { "none" } else { style.dash }
    );
}

fn mark(svg: &mut String, style: &Style, (x, y): (f64, f64)) {
    let fill = if style.dash.is_empty() { style.colour } else { "#ffffff" };
    let _ = writeln!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.4\"/>",
        style.colour
    );
}
