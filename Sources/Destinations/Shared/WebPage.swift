internal import Transport

extension Response {
    /// Whether the body is a web page, whatever it calls itself: a login portal says 200 to everything.
    var isWebPage: Bool {
        // Blanks, and the mark of UTF-8, may stand before it.
        body.prefix(4096).first { $0 > 0x20 && ![0xEF, 0xBB, 0xBF].contains($0) } == UInt8(ascii: "<")
    }
}
