/// An amount of bytes as people read it: `999 B`, `1.2 MB`, `118 MB`: decimal units, three digits.
package func shownBytes(_ count: Int64) -> String {
    let names = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    var value = Double(count)
    var step = 0
    // 999.5 would be shown as 1000.
    while value >= (step == 0 ? 1000 : 999.5) && step < names.count - 1 {
        value /= 1000
        step += 1
    }
    if step == 0 { return "\(count) B" }
    if value >= 99.95 { return "\(Int(value + 0.5)) \(names[step])" }
    let tenths = Int(value * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10) \(names[step])"
}
