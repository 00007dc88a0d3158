/// MPEG transport streams: packets of 188 bytes, each beginning with 0x47 (ISO/IEC 13818-1); in the `.m2ts` of discs and
/// camcorders each has four bytes of time before it.
enum TransportStream {
    private static let sync: UInt8 = 0x47
    /// Number of packets that are checked at each end.
    private static let checkedPackets: Int64 = 5

    struct Packet {
        let length: Int64
        /// Bytes before the sync byte.
        let prefix: Int64
    }

    /// The kind of packets, when the file begins with five of them, or with two or more and ends before the fifth.
    static func packet(of reader: HeaderReader) throws(HeaderReader.Stop) -> Packet? {
        for packet in [Packet(length: 188, prefix: 0), Packet(length: 192, prefix: 4)] {
            let count = min(checkedPackets, reader.size / packet.length)
            if count < 2 { continue }
            if try inStep(reader, packet, 0..<count) { return packet }
        }
        return nil
    }

    /// Complete when the length is a multiple of the packet's, with the same packets at the end as at the beginning.
    ///
    /// The format has no end mark: a stream that is cut between two packets counts as complete.
    static func verdict(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Container.Verdict {
        guard let packet = try packet(of: reader) else {
            return .incomplete(.transportStream, reason: "begins with zeros: nothing was written there yet")
        }
        let (count, rest) = reader.size.quotientAndRemainder(dividingBy: packet.length)
        if rest != 0 {
            return .incomplete(.transportStream, reason: "ends \(rest) bytes into a packet of \(packet.length)")
        }
        guard try inStep(reader, packet, max(0, count - checkedPackets)..<count) else {
            return .incomplete(.transportStream, reason: "has no packets at its end")
        }
        return .complete(.transportStream)
    }

    private static func inStep(
        _ reader: HeaderReader, _ packet: Packet, _ numbers: Range<Int64>
    ) throws(HeaderReader.Stop) -> Bool {
        for number in numbers {
            guard try reader.bytes(at: number * packet.length + packet.prefix, 1).first == sync else { return false }
        }
        return true
    }
}
