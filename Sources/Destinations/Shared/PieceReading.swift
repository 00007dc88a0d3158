package import Core
package import Digests
package import Linux

/// Reads `range` of a file, piece by piece; waits for the disk. Ends early where the file does: the transport will
/// notice.
func readPieces(
    of place: FilePlace, _ range: Range<Int64>, _ take: (UnsafeRawBufferPointer) -> Void
) throws(SystemError) {
    let file = try Descriptor.open(place)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var at = range.lowerBound
    while at < range.upperBound {
        let wanted = UnsafeMutableRawBufferPointer(
            rebasing: buffer[..<Int(min(Int64(buffer.count), range.upperBound - at))])
        let got = try file.read(into: wanted, at: at, named: place.shown)
        if got == 0 { break }
        take(UnsafeRawBufferPointer(rebasing: wanted[..<got]))
        at += Int64(got)
    }
}

/// The digest of `range` of a file; waits for the disk.
package func digestOfPiece(
    _ algorithm: Hasher.Algorithm, _ place: FilePlace, _ range: Range<Int64>
) throws(SystemError) -> [UInt8] {
    let digest = Hasher(algorithm)
    try readPieces(of: place, range) { digest.update($0) }
    return digest.finish()
}
