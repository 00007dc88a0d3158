internal import Core

/// Rows in columns that fit a terminal: columns shrink, the least important are left out first, and nothing wraps.
/// Output to a file or another program is complete.
struct Table {
    struct Column {
        let title: String
        var isRight = false
        /// The minimum width while the column is shown.
        var minimum = 4
        /// Whether cells may be cut with an ellipsis; others are shown whole or not at all.
        var shrinks = false
        /// Columns are left out in descending order when space is short; 0 is never left out.
        var expendable = 0
    }

    struct Row {
        var cells: [String]
        var styles: [Int: Console.Style] = [:]
        /// Lines below the row, indented and cut to the width.
        var notes: [(text: String, style: Console.Style?)] = []
    }

    let columns: [Column]
    var rows: [Row] = []

    func lines(_ console: Console) -> [String] {
        lines(width: console.isTerminal ? console.width : .max, style: console.styled)
    }

    /// - Parameter style: Applies a style to a text.
    func lines(width: Int, style: (String, Console.Style?) -> String) -> [String] {
        let (shown, widths) = layout(width)
        func render(_ cells: [String], _ styleOf: (Int) -> Console.Style?) -> String {
            var out = ""
            for (position, index) in shown.enumerated() {
                let cell = cut(cells[index], to: widths[position])
                let isLast = position == shown.count - 1
                let gap = String(repeating: " ", count: max(0, widths[position] - displayWidth(cell)))
                let text = style(cell, styleOf(index))
                out += columns[index].isRight ? gap + text : isLast ? text : text + gap
                if !isLast { out += "  " }
            }
            return out
        }
        var lines = [render(columns.map(\.title)) { _ in .dim }]
        for row in rows {
            lines.append(render(row.cells) { row.styles[$0] })
            lines += row.notes.map { "  " + style(cut($0.text, to: max(8, width - 2)), $0.style) }
        }
        return lines
    }

    /// The shown columns, and the width of each.
    private func layout(_ width: Int) -> (shown: [Int], widths: [Int]) {
        let natural = columns.indices.map { index in
            max(displayWidth(columns[index].title), rows.map { displayWidth($0.cells[index]) }.max() ?? 0)
        }
        // A column without any text is left out.
        var shown = columns.indices.filter { index in rows.isEmpty || rows.contains { !$0.cells[index].isEmpty } }
        func least(_ index: Int) -> Int {
            columns[index].shrinks ? min(natural[index], columns[index].minimum) : natural[index]
        }
        func total(_ width: (Int) -> Int) -> Int { shown.map(width).reduce(0, +) + 2 * max(0, shown.count - 1) }
        while total(least) > width,
            let victim = shown.filter({ columns[$0].expendable > 0 }).max(by: {
                columns[$0].expendable < columns[$1].expendable
            })
        { shown.removeAll { $0 == victim } }
        var widths = shown.map { natural[$0] }
        // The widest column that may shrink is narrowed first.
        while widths.reduce(0, +) + 2 * max(0, shown.count - 1) > width {
            let candidates = shown.indices.filter { columns[shown[$0]].shrinks && widths[$0] > least(shown[$0]) }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
        }
        return (shown, widths)
    }
}

/// Columns that a terminal needs for `text`: two for wide East Asian letters and emoji, none for combining marks.
func displayWidth(_ text: String) -> Int {
    if text.utf8.allSatisfy({ $0 < 0x80 && $0 != 0x1B }) { return text.utf8.count }
    if text.contains("\u{1B}") { return displayWidth(withoutStyles(text)) }
    return text.reduce(0) { sum, letter in
        guard let first = letter.unicodeScalars.first else { return sum }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return sum
        default: return sum + (isWide(first) ? 2 : 1)
        }
    }
}

/// `text` without the sequences of ``Console/styled(_:_:)``: ESC, `[`, and all up to `m`.
func withoutStyles(_ text: String) -> String {
    let pieces = text.split(separator: "\u{1B}", omittingEmptySubsequences: false)
    return pieces.dropFirst().reduce(String(pieces.first ?? "")) { plain, piece in
        plain + (piece.firstIndex(of: "m").map { piece[piece.index(after: $0)...] } ?? "")
    }
}

/// East Asian Width W or F (Unicode Standard Annex 11), by block.
private func isWide(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
        true
    default: false
    }
}

/// `text` with at most `width` columns; a longer text loses its middle, since names differ at both ends.
func cut(_ text: String, to width: Int) -> String {
    guard displayWidth(text) > width else { return text }
    guard width > 1 else { return width == 1 ? "…" : "" }
    let head = (width - 1) / 2
    return prefix(of: text, width: head) + "…"
        + String(prefix(of: String(text.reversed()), width: width - 1 - head).reversed())
}

private func prefix(of text: String, width: Int) -> String {
    var out = ""
    var used = 0
    for letter in text {
        used += displayWidth(String(letter))
        if used > width { break }
        out.append(letter)
    }
    return out
}

func filled(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - displayWidth(text)))
}
