internal import Core

/// The form of a value in the file: what a table of keys says about it, and what a JSON Schema can check.
package indirect enum ValueKind: Hashable, Sendable {
    case flag
    case whole(ClosedRange<Int>)
    /// From 1% to 100%.
    case share
    /// An amount of bytes.
    case bytes
    case duration(ClosedRange<Duration>)
    /// A length of time of at least this, or `never`.
    case durationOrNever(Duration)
    case rate
    /// A text of this kind, and the regular expression (ECMA-262) that it matches; `nil` for any text.
    case string(String, pattern: String?)
    /// One of these words.
    case word([String])
    case list(ValueKind)
    /// The absolute path of a program, and its arguments.
    case program
    /// A list, or one item without its brackets.
    case oneOrList(ValueKind)
    /// A mapping of free names.
    case map(ValueKind)
    /// A mapping with the keys of the section at this path.
    case section(String)
    /// A value of any of these forms.
    case either([ValueKind])

    static let text = string("text", pattern: ".")
    static let textOrNothing = string("text", pattern: nil)
    static let name = string("name", pattern: "^[A-Za-z0-9_.-]{1,64}$")
    static let path = string("path", pattern: "^/(?!\\.\\.(/|$))(?!.*/\\.\\.(/|$))")
    static let pathBelow = string("name or path below the folder", pattern: "^(?!/)(?!\\.\\.(/|$))(?!.*/\\.\\.(/|$)).")
    static let pattern = string("pattern", pattern: "^[^/!{][^{]*$")
    static let ending = string("ending", pattern: "^\\.?[A-Za-z0-9_-]{1,16}$")
    static let marker = string("name with `{name}` or `{stem}`", pattern: "\\{(name|stem)\\}")
    static let url = string("address", pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\s]+([/?][^#\\s]*)?$")
    static let origin = string("origin", pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@*\\s]+$")
    static let template = string("template", pattern: ".")
    static let relativeName = string(
        "template of a relative name", pattern: "^(?!/)(?!.*//)(?!.*/$)(?!\\.\\.(/|$)).*\\{(name|stem|relative)\\}")
    static let target = string("template of an absolute path", pattern: "^/")
    static let listen = string("address and port", pattern: ":[0-9]+$")
    static let hostName = string("name of a host", pattern: "^[A-Za-z0-9_.-]+$")
    static let host = string("name or address of a host", pattern: "^[A-Za-z0-9_.:-]{1,254}$")
    static let proxy = string("address or network", pattern: "^[0-9A-Fa-f.:]+(/[0-9]+)?$")
    static let subnet = string("network", pattern: "^[0-9A-Fa-f.:]+/[0-9]+$")
    static let hardwareAddress = string("hardware address", pattern: "^[0-9A-Fa-f]{2}([:-]?[0-9A-Fa-f]{2}){5}$")
    static let day = string("day", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    static let window: ValueKind = {
        let days = Weekday.allCases.map { day in
            day.rawValue.map { "[\($0.uppercased())\($0)]" }.joined()
        }
        let day = "(\(days.joined(separator: "|")))"
        let time = "(([01]?[0-9]|2[0-3]):[0-5][0-9]"
        return string(
            "window", pattern: "^ *(\(day)(-\(day))?(,\(day)(-\(day))?)* +)?\(time))-\(time)|24:00) *$")
    }()
    static let releaseUnsure = string(
        "`keep`, `delete`, or `after` a length of time", pattern: "^(keep|delete|after +\(durationParts))$")
    static let secret = section("SECRET")
    static let textOrSecret = either([.text, .secret])

    /// For a table of keys: `length of time, 1s to 1h`.
    package var text: String {
        switch self {
        case .flag: "`true` or `false`"
        case .whole(let range) where range.count == 1: "`\(range.lowerBound)`"
        case .whole(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .share: "share, 1% to 100%"
        case .bytes: "amount of bytes"
        case .duration(let range):
            "length of time, \(writtenTime(range.lowerBound)) to \(writtenTime(range.upperBound))"
        case .durationOrNever(let least): "length of time from \(writtenTime(least)), or `never`"
        case .rate: "rate"
        case .string(let text, _): text
        case .word(let words): words.map { "`\($0)`" }.joined(separator: ", ")
        case .list(let item): "list: \(item.text)"
        case .program: "list: a program by its absolute path, and its arguments"
        case .oneOrList(let item): "\(item.text), or list: \(item.text)"
        case .map(let value): "names, each with: \(value.text)"
        case .secret: "secret"
        case .section: "mapping"
        case .either(let kinds): kinds.map(\.text).joined(separator: ", or ")
        }
    }
}
