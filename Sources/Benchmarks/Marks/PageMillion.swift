internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// The web page with the backlog of weeks, in a real browser. `ROWS` is the number of uploads; the marks are those of a
/// million. The uploads have no files: all their destinations are paused, so that nothing looks for them.
let pageMarks: [Mark] = [
    Mark(name: "page/million", what: "the web page with 1,000,000 uploads, in a headless Chromium (ROWS= for fewer)") {
        bench in
        let rows = getenv("ROWS").flatMap { Int(String(cString: $0)) } ?? 1_000_000
        let python = Repository.root.appending(".build/tools/web/bin/python3")
        guard try FileStatus.ifPresent(at: python) != nil else {
            throw Absent(what: "Playwright", remedy: "scripts/test-web installs it")
        }
        _ = try bench.program("chromium", package: "--no-install-recommends chromium")
        let home = TemporaryFolder()
        try await Backlog(uploads: rows, watched: home.path.appending("drop"), isCopied: true).fill(
            home.path.appending("state"))
        let output = home.path.appending("findings")
        let program = bench.sluice.isAbsolute ? bench.sluice : Repository.root.appending(bench.sluice)
        let child = try Child(
            python,
            [
                Repository.root.appending("Tests/web/million.py").display, program.display, home.path.display,
                "\(rows)",
            ],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"], output: output, errors: home.path.appending("errors"))
        guard try await child.end(within: .seconds(1_800)) == .status(0) else {
            throw WrongResult("million.py: \(try child.standardError().suffix(2_000))")
        }
        return try String(decoding: Files.read(output), as: UTF8.self).split(separator: "\n").map(finding)
    }
]

/// A line of the script: what, value, unit and bound, with tabs between; or what and a text.
private func finding(_ line: Substring) throws -> Finding {
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    if fields.count == 2 { return .note(fields[0], fields[1]) }
    guard fields.count == 4, let value = Double(fields[1]) else { throw WrongResult("no finding: \(line)") }
    guard !fields[3].isEmpty else { return .note(fields[0], "\(shown(value)) \(fields[2])") }
    guard let most = Double(fields[3]) else { throw WrongResult("no bound: \(line)") }
    return .bound(fields[0], value, fields[2], most: most)
}
